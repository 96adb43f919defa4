package topology

import (
	"bytes"
	"math"
	"testing"
)

func FuzzDecodeRecords(f *testing.F) {
	records, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range records {
		f.Add(r.Key, r.Value)
	}
	f.Add("service/x/0", []byte(`{"name":"x","instances":null}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		c, err := DecodeRecords([]Record{{key, value}})
		if err != nil {
			return
		}
		Expand(c, ExpandOptions{Zone: "a"})
		if len(c.Routes) > 0 {
			return // its target is another record
		}
		again, err := Encode(c)
		if err != nil {
			t.Fatalf("what was decoded can't be encoded: %v", err)
		}
		back, err := DecodeRecords(again)
		if err != nil {
			t.Fatalf("what was encoded can't be decoded: %v", err)
		}
		twice, err := Encode(back)
		if err != nil || len(twice) != len(again) {
			t.Fatalf("%v", err)
		}
		for i := range again {
			if again[i].Key != twice[i].Key || !bytes.Equal(again[i].Value, twice[i].Value) {
				t.Fatalf("not canonical:\n%s\n%s", again[i].Value, twice[i].Value)
			}
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	v, err := Commit{Version: 3, Epoch: 2, Count: 1, Cause: "x"}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v)
	f.Add([]byte(`{"version":-1}`))
	f.Add([]byte(`{"version":9223372036854775807,"epoch":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := DecodeCommit(value)
		if err != nil {
			return
		}
		if !c.Pair().Valid() {
			t.Fatalf("commit %s", c.Pair())
		}
		again, err := c.Encode()
		if err != nil {
			return // a year that JSON can't carry
		}
		back, err := DecodeCommit(again)
		if err != nil || !back.At.Equal(c.At) || back.Digest != c.Digest || back.Pair() != c.Pair() || back.Count != c.Count || back.Cause != c.Cause {
			t.Fatalf("%+v came back as %+v: %v", c, back, err)
		}
	})
}

func FuzzTexts(f *testing.F) {
	f.Add("10s")
	f.Add("1h2m3.5s")
	f.Add("00")
	f.Add("12345")
	f.Add("9007199254740992")
	f.Add("9007199254740993")
	f.Add("9223372036854775807")
	f.Fuzz(func(t *testing.T, s string) {
		var d Duration
		if d.UnmarshalText([]byte(s)) == nil {
			text, err := d.MarshalText()
			var back Duration
			if err != nil || back.UnmarshalText(text) != nil || back != d {
				t.Fatalf("%q: %s came back as %s", s, d, back)
			}
		}
		if g, err := ParseDigest(s); err == nil {
			if back, err := ParseDigest(g.String()); err != nil || back != g {
				t.Fatalf("%q: digest %s", s, g)
			}
		}
		if p, err := ParseHeaders(s, "1"); err == nil && !p.Valid() {
			t.Fatalf("%q: %s", s, p)
		}
		if n, err := parseKey(s); err == nil && n.kind == kindRoute && RouteKey(n.host, n.path) != s {
			t.Fatalf("%q: %+v", s, n)
		}
	})
}

// FuzzReplica feeds any records in any order: whatever comes, an accepted commit's topology is what its digest says.
func FuzzReplica(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x80, 5, 6, 7, 0xff, 0x81})
	f.Add([]byte{1, 2, 3, 0x80, 5, 6, 7, 0xff, 0x81, 1, 2, 3, 0x80, 5, 6, 7, 0x7f, 0x83, 0xff})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := NewReplica()
		values := map[string][]byte{}
		for i, b := range script {
			name := string(rune('a' + b&3))
			pair := Pair{int64(b >> 2 & 3), int64(b >> 4 & 3)}
			if i%17 == 16 && b&3 == 3 && b&0x80 == 0 {
				if pair.Epoch = math.MaxInt64 - int64(b); r.Put("service/"+name, nil, pair.Epoch, pair.Version) || r.Highest().Epoch > 3 {
					t.Fatalf("%s counts", pair)
				}
				continue
			}
			if b&0x80 == 0 {
				var value []byte
				if i%3 > 0 {
					value = service(name, string(rune('0'+i%10)))
				}
				if r.Put("service/"+name, value, pair.Epoch, pair.Version) {
					values["service/"+name] = value
				}
				continue
			}
			var records []Record
			for k, v := range values {
				if v != nil {
					records = append(records, Record{k, v})
				}
			}
			d, n := r.Digest()
			if d != DigestOf(records) || n != len(records) {
				t.Fatalf("digest or count drifted")
			}
			w := &writer{pair: pair, content: map[string][]byte{}}
			for _, rec := range records {
				w.content[rec.Key] = rec.Value
			}
			before := r.Applied().Pair()
			topo, err := feed(r, w.commit(t))
			if (err == nil) == pair.Less(before) {
				t.Fatalf("commit %s after %s: %v", pair, before, err)
			}
			if topo != nil {
				checkAssembly(t, r, topo)
			}
		}
	})
}
