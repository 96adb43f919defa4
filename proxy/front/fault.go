package front

import "github.com/upstrand/upstrand/proxy/syntax"

// fault is what is wrong with a request, in words for the client, and how that is answered.
type fault struct {
	status int
	why    string
}

var (
	faultLine      = &fault{400, "the request line is not valid"}
	faultMethod    = &fault{400, "the method is not valid"}
	faultTarget    = &fault{400, "the target is not valid"}
	faultStar      = &fault{400, "the target * is for OPTIONS only"}
	faultAddress   = &fault{400, "the target is neither a path nor an http address"}
	faultVersion   = &fault{505, "the version of HTTP is not supported"}
	faultEmpty     = &fault{400, "too many empty lines before the request"}
	faultBareLF    = &fault{400, "a line ends in LF without CR"}
	faultFolded    = &fault{400, "a header field is folded"}
	faultName      = &fault{400, "the name of a header field is not valid"}
	faultValue     = &fault{400, "a header field has control characters"}
	faultNoHost    = &fault{400, "the Host field is missing"}
	faultHosts     = &fault{400, "there are several Host fields"}
	faultHost      = &fault{400, "the host is not valid"}
	faultLength    = &fault{400, "the Content-Length is not valid"}
	faultLengths   = &fault{400, "there are several Content-Length fields"}
	faultBoth      = &fault{400, "there are both Content-Length and Transfer-Encoding"}
	faultCoding    = &fault{400, "the Transfer-Encoding is not valid"}
	faultCodings   = &fault{400, "there are several Transfer-Encoding fields"}
	faultCoding10  = &fault{400, "HTTP/1.0 has no Transfer-Encoding"}
	faultExpect    = &fault{417, "the expectation is not known"}
	faultRepeated  = &fault{400, "a header field that may stand once only is there twice"}
	faultLongLine  = &fault{414, "the request's first line is too long"}
	faultLongField = &fault{400, "a header field is too long"}
	faultLongHead  = &fault{400, "the header is too long"}
	faultLarge     = &fault{431, "the header is too large"}
	faultChunk     = &fault{400, "the body's chunks are not valid"}
	// RFC 9112, 6.1: a coding that is not understood is not implemented.
	faultCodingUnknown = &fault{501, "the Transfer-Encoding is not known"}
)

func faultOf(err error) *fault {
	switch err {
	case syntax.ErrFolded:
		return faultFolded
	case syntax.ErrFieldName:
		return faultName
	}
	return faultValue
}
