package syntax

// Once is which of the fields a request has that it may have once only. The zero value: none.
type Once uint8

// onceOnly are their names, in lower case; Host, Content-Length and Transfer-Encoding are known to whoever reads the head. Two of
// them mean nothing by RFC 9110, and whoever comes behind us would choose one in its own way; nginx refuses them too.
var onceOnly = [...]string{"expect", "if-range", "authorization", "content-range", "if-modified-since", "if-unmodified-since"}

// Again takes note of a field by its name, in any case, and tells whether it is a second one of those.
func (o *Once) Again(name []byte) bool {
	switch len(name) {
	case len("expect"), len("if-range"), len("authorization"), len("if-modified-since"), len("if-unmodified-since"):
		return o.again(name)
	}
	return false
}

func (o *Once) again(name []byte) bool {
	for i, n := range onceOnly {
		if Equal(name, n) {
			bit := Once(1) << i
			before := *o&bit != 0
			*o |= bit
			return before
		}
	}
	return false
}
