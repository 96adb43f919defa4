package forward

import "bytes"

// options are the fields that Connection names besides those that never travel anyway, in lower case; nil: none, as in
// nearly every message. They are taken once for a message: looking each field up in the Connection fields would let a
// client make one head cost minutes.
type options map[string]struct{}

func optionsOf(fields []Field) options {
	var o options
	for _, f := range fields {
		if !is(f.Name, "Connection") {
			continue
		}
		for item := range bytes.SplitSeq(f.Value, []byte(",")) {
			if item = bytes.TrimSpace(item); len(item) == 0 || is(item, "close") || isHop(item) {
				continue
			}
			if o == nil {
				o = options{}
			}
			o[string(bytes.ToLower(item))] = struct{}{}
		}
	}
	return o
}

// pass tells whether a field travels on to the next hop.
func (o options) pass(name []byte) bool {
	if isHop(name) {
		return false
	}
	if len(o) == 0 {
		return true
	}
	_, named := o[string(bytes.ToLower(name))]
	return !named
}
