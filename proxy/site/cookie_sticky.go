package site

import (
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// stick adds the cookie by which the client's next request finds the peer in use, if there was one.
func (r *request) stick() {
	u := &r.up
	texts := u.to.texts
	if texts == nil || texts.cookie == "" || len(u.trail) == 0 {
		return
	}
	last := &u.trail[len(u.trail)-1]
	if last.Peer == nil {
		return
	}
	if id := last.Peer.Route(); id != "" {
		r.sent.extra = append(r.sent.extra, forward.Field{Name: nameSetCookie, Value: texts.setCookie(r, id)})
	}
}

var nameSetCookie = []byte("Set-Cookie")

// cookieDate is the form of dates in cookies.
const cookieDate = "Mon, 02-Jan-06 15:04:05 GMT"

// setCookie is the cookie's text: attributes in nginx's order.
func (t *balancingTexts) setCookie(r *request, id string) []byte {
	s := t.sticky
	b := append(append(append(r.Borrow(), s.Name...), '='), id...)
	switch {
	case s.Expires == "max":
		b = append(b, "; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"...)
	case t.expires:
		b = time.Unix(0, r.moment()).Add(t.age).UTC().AppendFormat(append(b, "; expires="...), cookieDate)
		b = strconv.AppendInt(append(b, "; max-age="...), int64(t.age/time.Second), 10)
	}
	if domain := t.domain.Value(r); domain != "" {
		b = append(append(b, "; domain="...), domain...)
	}
	if s.HTTPOnly {
		b = append(b, "; httponly"...)
	}
	if s.Secure {
		b = append(b, "; secure"...)
	}
	if same := t.same.Value(r); same != "" {
		b = append(append(b, "; samesite="...), same...)
	}
	if s.Path != "" {
		b = append(append(b, "; path="...), s.Path...)
	}
	text := r.Keep(b)
	r.GiveBack(b)
	return singleLine(text)
}
