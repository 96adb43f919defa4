package forward

import "bytes"

// Get is the value of the first field of that name, nil when there is none.
func Get(fields []Field, name string) []byte {
	for i := range fields {
		if is(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

// keptFields is for how many fields memory that is used again keeps room.
const keptFields = 256

// emptied is memory for the fields of another message.
func emptied(fields []Field) []Field {
	if cap(fields) > keptFields {
		return nil
	}
	clear(fields)
	return fields[:0]
}

// added appends a field. To build it in place is quicker than to copy one.
func added(list []Field, name, value []byte) []Field {
	list = append(list, Field{})
	f := &list[len(list)-1]
	f.Name, f.Value = name, value
	return list
}

// Is compares a field's name with another one, as Get does.
func Is(have []byte, name string) bool { return is(have, name) }

// is compares names without regard to the case of ASCII letters: others have none in HTTP. It is small enough to be inlined, so
// that nothing is called for names of another length, as most are.
func is(have []byte, name string) bool { return len(have) == len(name) && alike(have, name) }

// alike is is for names of one length.
func alike(have []byte, name string) bool {
	for i, c := range have {
		if d := name[i]; c != d {
			if c ^= d; c != 'a'-'A' {
				return false
			}
			if d |= 'a' - 'A'; d < 'a' || d > 'z' {
				return false
			}
		}
	}
	return true
}

// endToEnd appends to out the fields of an answer that travel on: not those of the hop, nor what Connection names. Of the
// names that Trailer announces it leaves those of fields that travel on too.
func endToEnd(out, fields []Field) []Field {
	o := optionsOf(fields)
	for i := range fields {
		name, value := fields[i].Name, fields[i].Value
		if !o.pass(name) {
			continue
		}
		if is(name, "Trailer") {
			if value = trailerNames(value, o.pass); value == nil {
				continue
			}
		}
		out = added(out, name, value)
	}
	return out
}

// isHop names the fields that speak of one connection only. TE and Upgrade are put back where they apply.
func isHop(name []byte) bool {
	switch len(name) {
	case len("TE"):
		return is(name, "TE")
	case len("Upgrade"):
		return is(name, "Upgrade")
	case len("Connection"):
		return is(name, "Connection") || is(name, "Keep-Alive")
	case len("HTTP2-Settings"):
		return is(name, "HTTP2-Settings")
	case len("Proxy-Connection"):
		return is(name, "Proxy-Connection")
	case len("Transfer-Encoding"):
		return is(name, "Transfer-Encoding")
	}
	return false
}

// named reports whether a Connection field names the given one.
func named(fields []Field, name []byte) bool {
	for i := range fields {
		if is(fields[i].Name, "Connection") && hasToken(fields[i].Value, name) {
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
	if len(v) == 0 || len(v) > 18 {
		return -1
	}
	n := int64(0)
	for _, c := range v {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
