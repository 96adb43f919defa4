package balance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// makers make the methods, by the name that a configuration gives them. Round robin is no method: it is what decides
// when there is none.
var makers = map[string]func(MethodSpec) Method{
	"":           func(MethodSpec) Method { return nil },
	"least_conn": func(MethodSpec) Method { return leastConn{} },
	"least_time": func(s MethodSpec) Method { return leastTime{lastByte: s.LastByte, inflight: s.Inflight} },
	"ip_hash":    func(MethodSpec) Method { return &ipHash{} },
	"hash": func(s MethodSpec) Method {
		if s.Consistent {
			return &ketama{}
		}
		return &keyHash{}
	},
	"random": func(s MethodSpec) Method { return &random{two: s.Two} },
}

// newMethod makes the method of a spec, nil for round robin. A Builder among them needs Build before it can choose.
func newMethod(spec MethodSpec) (Method, error) {
	maker, known := makers[spec.Name]
	if !known {
		names := slices.Sorted(maps.Keys(makers))
		return nil, fmt.Errorf("method %q is unknown; allowed: none for round robin%s", spec.Name, strings.Join(names, ", "))
	}
	return maker(spec), nil
}

// patience is how many candidates a hash or a random method may reject in one request; after one more, round robin
// decides for the rest of the request.
const patience = 20

// giveUp counts a rejected candidate and reports whether it was one too many.
func (m *Memo) giveUp() bool {
	m.Tries++
	return m.Tries > patience
}

// unfit reports whether a method that maps onto the main servers has nothing to say: among backup servers, with fewer
// than two, or when its patience is over.
func (r *Round) unfit() bool {
	return r.Backup() || r.Len() < 2 || r.Memo().Tries > patience
}
