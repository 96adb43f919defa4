package http2

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestEncoder: what is written is read by others as what it was, in order, but for what has no place in HTTP/2.
func TestEncoder(t *testing.T) {
	long := strings.Repeat("v", 40000)
	fields := []forward.Field{
		field("Content-Type", "text/plain"), field("X-Own", ""), field("SET-cookie", "a"), field("set-cookie", "b"), field("Connection", "close"),
		field("Keep-Alive", "1"), field("Transfer-Encoding", "chunked"), field("Upgrade", "x"), field("bad name", "x"), field("x-split", "a\r\nb: c"),
		field("Date", "then"), field("x-long", long), field(strings.Repeat("N", 100), "n"), field("WWW-Authenticate", "w"), field("Accept-Charset", "u"), field("", "x"),
	}
	var seen seen
	block := appendFields(appendStatus(nil, 418), fields, &seen)
	if !seen.date || seen.length {
		t.Errorf("%+v", seen)
	}
	got, err := hpack.NewDecoder(4096, nil).DecodeFull(appendNumber(block, nameLength, 12345))
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, f := range got {
		text = append(text, f.Name+"="+f.Value)
	}
	want := ":status=418|content-type=text/plain|x-own=|set-cookie=a|set-cookie=b|x-split=a  b: c|date=then|x-long=" + long + "|" +
		strings.Repeat("n", 100) + "=n|www-authenticate=w|accept-charset=u|content-length=12345"
	if s := strings.Join(text, "|"); s != want {
		t.Errorf("%.300s\nwant %.300s", s, want)
	}
	for name, i := range staticNames {
		got, err := hpack.NewDecoder(4096, nil).DecodeFull(appendField(nil, []byte(name), []byte("x")))
		if err != nil || len(got) != 1 || got[0].Name != name {
			t.Errorf("%s by %d: %v, %v", name, i, got, err)
		}
	}
	for status := range 1000 {
		if status < 100 {
			continue
		}
		got, err := hpack.NewDecoder(4096, nil).DecodeFull(appendStatus(nil, status))
		if err != nil || len(got) != 1 || got[0].Value != fmt.Sprint(status) {
			t.Fatalf("%d: %v, %v", status, got, err)
		}
	}
}

// TestHeadsOfAnySize: a head that is larger than a frame goes on in others.
func TestHeadsOfAnySize(t *testing.T) {
	for _, size := range []int{0, 1, 126, 127, 128, 254, 255, 256, 16<<10 - 4, 16 << 10, 40000} {
		block := appendField(nil, []byte("x"), []byte(strings.Repeat("y", size)))
		got, err := hpack.NewDecoder(4096, nil).DecodeFull(block)
		if err != nil || len(got) != 1 || len(got[0].Value) != size {
			t.Errorf("%d: %v", size, err)
		}
	}
}
