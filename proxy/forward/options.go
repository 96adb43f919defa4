package forward

import "bytes"

// options are the fields that Connection names besides those that never travel anyway, in lower case; nil: none, as in
// nearly every message. They are taken once for a message: looking each field up in the Connection fields would let a
// client make one head cost minutes.
type options map[string]struct{}

func optionsOf(fields []Field) options {
	var o options
	for i := range fields {
		if is(fields[i].Name, "Connection") {
			o = o.with(fields[i].Value)
		}
	}
	return o
}

func (o options) with(list []byte) options {
	if is(list, "keep-alive") || is(list, "close") {
		return o
	}
	for item := range bytes.SplitSeq(list, []byte(",")) {
		if item = bytes.TrimSpace(item); len(item) == 0 || is(item, "close") || isHop(item) {
			continue
		}
		if o == nil {
			o = options{}
		}
		o[string(bytes.ToLower(item))] = struct{}{}
	}
	return o
}

// pass tells whether a field travels on to the next hop.
func (o options) pass(name []byte) bool { return !isHop(name) && (len(o) == 0 || !o.names(name)) }

// names tells whether a field is named. It is kept out of those who ask, since nearly always there is nothing to look into.
//
//go:noinline
func (o options) names(name []byte) bool {
	_, named := o[string(bytes.ToLower(name))]
	return named
}

// Named is the fields that a message's Connection fields name. Like those of the hop they go no further.
type Named struct{ options options }

// NamedBy takes them from a message's fields, once for the message.
func NamedBy(fields []Field) Named { return Named{optionsOf(fields)} }

// Has tells whether a field is named.
func (n Named) Has(name []byte) bool { return len(n.options) > 0 && n.options.names(name) }
