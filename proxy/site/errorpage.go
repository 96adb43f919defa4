package site

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
)

// errorPage is where requests go that end with a status.
type errorPage struct {
	status int
	answer int // the status to answer with; keepStatus, ownStatus
	to     *template
}

const (
	keepStatus = -1 // answer with the status that it stands for
	ownStatus  = 0  // answer with what the page itself has
)

func setErrorPage(l *level, n *topology.Node) {
	if !l.args(n, 2, -1) {
		return
	}
	codes, last := n.Args[:len(n.Args)-1], n.Args[len(n.Args)-1]
	as := keepStatus
	if code, ok := strings.CutPrefix(codes[len(codes)-1], "="); ok {
		codes = codes[:len(codes)-1]
		as = ownStatus
		if code != "" {
			var err error
			if as, err = topology.ParseNumber(code, 1); err != nil || as > 999 {
				l.problem(n, fmt.Sprintf("status %q", "="+code), "= or =200 and the like, up to 999")
				return
			}
		}
		if len(codes) == 0 {
			l.problem(n, "names no status that it stands for", "error_page 404 … =200 /uri")
			return
		}
	}
	core := &l.settings().core
	if l.first("error_page") {
		core.errorPages = nil
	}
	to := l.template(n, last)
	for _, code := range codes {
		status, err := topology.ParseNumber(code, 300)
		if err != nil || status > 599 || status == 499 {
			l.problem(n, fmt.Sprintf("status %q", code), "300 to 599, not 499")
			continue
		}
		answer := as
		if as == keepStatus {
			answer = outwardly(status, keepStatus)
		}
		core.errorPages = append(core.errorPages, errorPage{status, answer, to})
	}
}

// errorPage is the page for a status as things stand; nil: there is none.
func (r *request) errorPage(status int) *errorPage {
	if r.inError || r.changes == 0 || r.conf == nil {
		return nil
	}
	pages := r.conf.core.errorPages
	for i := range pages {
		if pages[i].status == status {
			return &pages[i]
		}
	}
	return nil
}

// failure ends a request with a status: by an error page, else by a page of our own.
func (r *request) failure(o outcome) outcome {
	r.errStatus = o.status
	if r.why == "" {
		r.why = whyOf[o.status]
	}
	r.last = r.last || closesAfter(o.status)
	r.rare().leads = o.location()
	page := r.errorPage(o.status)
	if page == nil {
		return r.ownPage(o)
	}
	r.inError = !r.conf.core.recursive
	if page.answer != keepStatus {
		r.errStatus = page.answer
	}
	to := page.to.Value(r)
	if r.trace != nil {
		r.step("error_page", strconv.Itoa(o.status)+" "+to, nil)
	}
	switch {
	case strings.HasPrefix(to, "@"):
		return r.led(named, 0, to, "")
	case strings.HasPrefix(to, "/"):
		uri, args, _ := strings.Cut(to, "?")
		r.becomeGet()
		return r.led(redirected, 0, uri, args)
	}
	if !redirects(page.answer) {
		r.errStatus = 302
	}
	return r.ownPage(r.led(failed, r.errStatus, to, ""))
}

// leading begins the fields of an answer with its Location, if it has one, and leaves room for more. A redirect keeps it
// also when an error page is given in its place.
func (r *request) leading(more int) []forward.Field {
	if r.unusual.leads == "" {
		return make([]forward.Field, 0, more+2)
	}
	return append(make([]forward.Field, 0, more+3), forward.Field{Name: nameLocation, Value: []byte(r.absolute(r.unusual.leads))})
}

// becomeGet makes a request that fetches what it is led to.
func (r *request) becomeGet() {
	if string(r.method) != "HEAD" {
		r.method = methodGet
	}
}

var methodGet = []byte("GET")

// redirects tells whether an answer of this status leads the client to its Location.
func redirects(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// ownPage answers with a small page that says the status, or with an empty body where nginx has no page. The outcome's
// to is the Location.
func (r *request) ownPage(o outcome) outcome {
	r.rare().leads = o.location()
	fields := r.leading(1)
	status := outwardly(o.status, o.status)
	r.errStatus = status
	title := titles[status]
	if title == "" {
		return r.answer(status, fields, nil)
	}
	fields = append(fields, forward.Field{Name: nameContentType, Value: typeHTML})
	if why := reasons[o.status]; why != "" {
		return r.answer(status, fields, pageWith(why))
	}
	return r.answer(status, fields, pageOf(status, title))
}

var (
	nameLocation    = []byte("Location")
	nameContentType = []byte("Content-Type")
	typeHTML        = []byte("text/html")
)

func pageOf(status int, title string) []byte {
	head := strconv.Itoa(status) + " " + title
	return []byte("<html>\r\n<head><title>" + head + "</title></head>\r\n<body>\r\n<center><h1>" + head +
		"</h1></center>\r\n<hr><center>upstrand</center>\r\n</body>\r\n</html>\r\n")
}

// reasons are what a page of 400 says for nginx's own statuses.
var reasons = map[int]string{
	statusHeadTooLarge: "Request Header Or Cookie Too Large", certs.StatusBadCertificate: "The SSL certificate error",
	certs.StatusNoCertificate: "No required SSL certificate was sent", statusPlain: "The plain HTTP request was sent to HTTPS port",
}

func pageWith(why string) []byte {
	return []byte("<html>\r\n<head><title>400 " + why + "</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n<center>" + why +
		"</center>\r\n<hr><center>upstrand</center>\r\n</body>\r\n</html>\r\n")
}

// outwardly is 400 for the statuses of nginx's own that clients are told so, else the other one.
func outwardly(status, other int) int {
	if status >= 494 && status <= 497 {
		return 400
	}
	return other
}

// titles are the statuses that have a page, with the reason phrases that our status lines have.
var titles = map[int]string{
	301: "Moved Permanently", 302: "Found", 303: "See Other", 307: "Temporary Redirect", 308: "Permanent Redirect",
	400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
	412: "Precondition Failed", 413: "Request Entity Too Large", 414: "Request URI Too Long", 415: "Unsupported Media Type",
	416: "Requested Range Not Satisfiable", 421: "Misdirected Request", 429: "Too Many Requests",
	500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
}
