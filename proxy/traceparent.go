package proxy

import "github.com/upstrand/upstrand/proxy/forward"

// traceID is the trace that a client's request belongs to, by its W3C traceparent field; nil: it has none that is valid.
func traceID(fields []forward.Field) []byte {
	v := forward.Get(fields, "traceparent")
	const length = len("00-") + 32 + len("-") + 16 + len("-00")
	if len(v) < length || v[2] != '-' || v[35] != '-' || v[52] != '-' || string(v[:2]) == "ff" || len(v) > length && (v[0] == '0' && v[1] == '0' || v[length] != '-') {
		return nil
	}
	if !lowerHex(v[:2]) || !lowerHex(v[3:35]) || !lowerHex(v[36:52]) || !lowerHex(v[53:55]) || zeros(v[3:35]) || zeros(v[36:52]) {
		return nil
	}
	return v[3:35]
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != '0' {
			return false
		}
	}
	return true
}
