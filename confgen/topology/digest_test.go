package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/quick"
)

// reference is the definition of the digest, by big numbers.
func reference(records []Record) Digest {
	sum := new(big.Int)
	for _, r := range records {
		var b []byte
		b = binary.BigEndian.AppendUint64(b, uint64(len(r.Key)))
		b = append(b, r.Key...)
		b = binary.BigEndian.AppendUint64(b, uint64(len(r.Value)))
		b = append(b, r.Value...)
		h := sha256.Sum256(b)
		sum.Add(sum, new(big.Int).SetBytes(h[:]))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	var d Digest
	sum.FillBytes(d[:])
	return d
}

func TestDigestIsASetDigest(t *testing.T) {
	property := func(keys []string, values [][]byte, seed uint64) bool {
		var records []Record
		for i, key := range keys {
			var value []byte
			if i < len(values) {
				value = values[i]
			}
			records = append(records, Record{Key: key, Value: value})
		}
		want := reference(records)
		if DigestOf(records) != want {
			t.Logf("not the reference's")
			return false
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		rng.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		if DigestOf(records) != want {
			t.Logf("order counts")
			return false
		}
		d := want
		d.Add("more", []byte("x"))
		if d == want {
			t.Logf("an added record changes nothing")
			return false
		}
		d.Remove("more", []byte("x"))
		return d == want
	}
	if err := quick.Check(property, nil); err != nil {
		t.Fatal(err)
	}
}

func TestDigestTellsKeyFromValue(t *testing.T) {
	if DigestOf([]Record{{"ab", []byte("c")}}) == DigestOf([]Record{{"a", []byte("bc")}}) {
		t.Error("the lengths are not part of the digest")
	}
	if DigestOf([]Record{{"a", []byte("1")}, {"b", []byte("2")}}) == DigestOf([]Record{{"a", []byte("2")}, {"b", []byte("1")}}) {
		t.Error("values can be swapped between keys")
	}
}

func TestDigestText(t *testing.T) {
	d := DigestOf([]Record{{"k", []byte("v")}})
	text, err := d.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back Digest
	if err := back.UnmarshalText(text); err != nil || back != d {
		t.Errorf("%s came back as %s: %v", d, back, err)
	}
	for _, bad := range []string{"", "00", string(text) + "0", "zz" + string(text[2:])} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
