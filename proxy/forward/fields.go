package forward

import (
	"bytes"
	"strconv"
)

// Get is the value of the first field of that name, nil when there is none.
func Get(fields []Field, name string) []byte {
	for i := range fields {
		if is(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

func is(have []byte, name string) bool {
	return len(have) == len(name) && bytes.EqualFold(have, []byte(name))
}

// hopByHop are the fields that speak of one connection only. TE and Upgrade are put back where they apply.
var hopByHop = [...]string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "TE", "Upgrade", "HTTP2-Settings"}

// endToEnd appends to out the fields of an answer that travel on: not those of the hop, nor what Connection names.
func endToEnd(out, fields []Field) []Field {
	options := optionsOf(fields)
	return keep(out, fields, options.pass)
}

// keep appends the fields that pass to out. Of the names that Trailer announces it leaves those of fields that pass too.
func keep(out, fields []Field, pass func(name []byte) bool) []Field {
	for _, f := range fields {
		if !pass(f.Name) {
			continue
		}
		if is(f.Name, "Trailer") {
			if f.Value = trailerNames(f.Value, pass); f.Value == nil {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

func isHop(name []byte) bool {
	for _, h := range hopByHop {
		if is(name, h) {
			return true
		}
	}
	return false
}

// named reports whether a Connection field names the given one.
func named(fields []Field, name []byte) bool {
	for _, f := range fields {
		if is(f.Name, "Connection") && hasToken(f.Value, name) {
			return true
		}
	}
	return false
}

// hasToken looks for a token in a comma-separated list, without regard to case.
func hasToken(list, token []byte) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if bytes.EqualFold(bytes.TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// upgradeOf is the protocol, or the list of them, that the fields ask to change to; nil when they don't.
func upgradeOf(fields []Field) []byte {
	if !named(fields, nameUpgrade) {
		return nil
	}
	if proto := Get(fields, "Upgrade"); len(proto) > 0 {
		return proto
	}
	return nil
}

// lengthOf is the Content-Length, -1 when there is none that can be read.
func lengthOf(fields []Field) int64 {
	v := Get(fields, "Content-Length")
	if v == nil {
		return -1
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
