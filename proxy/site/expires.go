package site

import (
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// expiry is what an expires directive says. Its text may hold variables; else it was read at load.
type expiry struct {
	text *template // nil: rule holds
	rule expiryRule
}

// expiryRule is one of the forms of expires.
type expiryRule struct {
	form  expiryForm
	after time.Duration // from now, from the answer's last change, or since midnight
}

type expiryForm uint8

const (
	expiresOff expiryForm = iota
	expiresEpoch
	expiresMax
	expiresAfter
	expiresModified
	expiresDaily
)

const expiresAllowed = "off, epoch, max, [modified] [-]TIME, @TIME of day, or a text with variables that gives one of them"

func setExpires(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 2) {
		return
	}
	modified := len(n.Args) == 2
	if modified && n.Args[0] != "modified" {
		l.problem(n, quote(n.Args[0]), expiresAllowed)
		return
	}
	text := n.Args[len(n.Args)-1]
	e := &expiry{}
	switch rule, ok := parseExpires(text); {
	case strings.Contains(text, "$") && !modified:
		e.text = l.template(n, text)
	case !ok, modified && rule.form != expiresAfter:
		l.problem(n, quote(text), expiresAllowed)
		return
	case modified:
		rule.form = expiresModified
		e.rule = rule
	case rule.form == expiresOff:
		e = nil
	default:
		e.rule = rule
	}
	l.settings().answer.expires = e
}

func parseExpires(text string) (expiryRule, bool) {
	switch text {
	case "off":
		return expiryRule{}, true
	case "epoch":
		return expiryRule{form: expiresEpoch}, true
	case "max":
		return expiryRule{form: expiresMax}, true
	}
	r := expiryRule{form: expiresAfter}
	rest, daily := strings.CutPrefix(text, "@")
	if daily {
		r.form = expiresDaily
	}
	rest, minus := strings.CutPrefix(rest, "-")
	d, err := topology.ParseSeconds(rest)
	if err != nil || daily && (minus || d > 24*time.Hour) {
		return r, false
	}
	if r.after = d; minus {
		r.after = -d
	}
	return r, true
}

// expire writes Expires and Cache-Control in place of what the answer says.
func (r *request) expire(list *fieldList, status int) {
	e := r.conf.answer.expires
	if e == nil || !isGood(status) {
		return
	}
	rule := e.rule
	if e.text != nil {
		var ok bool
		if rule, ok = parseExpires(e.text.Value(r)); !ok {
			return
		}
	}
	at, age, ok := rule.moment(time.Unix(0, r.env.Now()), list.get("Last-Modified"))
	if !ok {
		return
	}
	list.set("Expires", []byte(at))
	list.set("Cache-Control", []byte(age))
}

// moment is the text of both fields; false: they are left alone.
func (e expiryRule) moment(now time.Time, modified []byte) (expires, control string, ok bool) {
	at := now.Add(e.after)
	switch e.form {
	case expiresOff:
		return "", "", false
	case expiresEpoch:
		return "Thu, 01 Jan 1970 00:00:01 GMT", "no-cache", true
	case expiresMax:
		return "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000", true
	case expiresDaily:
		day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
		if at = day.Add(e.after); !at.After(now) {
			at = day.AddDate(0, 0, 1).Add(e.after)
		}
	case expiresModified:
		if changed, err := time.Parse(httpDate, string(modified)); err == nil {
			at = changed.Add(e.after)
		}
	}
	left := at.Unix() - now.Unix()
	if left < 0 || e.after < 0 {
		return at.UTC().Format(httpDate), "no-cache", true
	}
	return at.UTC().Format(httpDate), "max-age=" + strconv.FormatInt(left, 10), true
}

// httpDate is the form of dates in heads.
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"
