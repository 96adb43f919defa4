package topology

import "strings"

const (
	wantSticky       = "want sticky cookie NAME […], sticky route $VARIABLE…, or sticky learn create=$VARIABLE lookup=$VARIABLE zone=NAME:SIZE […]"
	wantStickyCookie = "want expires=TIME|max domain=DOMAIN path=PATH samesite=strict|lax|none|$VARIABLE secure httponly"
	wantStickyLearn  = "want create=$VARIABLE lookup=$VARIABLE zone=NAME:SIZE [timeout=TIME] [header]"

	minZone = 8 << 12 // bytes; nginx's eight pages
)

// sticky keeps a client at its server. A method after it takes it away again.
func (x *upstreamExpansion) sticky(d Directive) string {
	if len(d) < 3 {
		return wantSticky
	}
	if x.group.Sticky != nil || !x.once("sticky") {
		return "is duplicate"
	}
	s := &Sticky{Kind: d[1]}
	var reason string
	switch d[1] {
	case "cookie":
		reason = s.cookie(d[2:])
	case "route":
		s.Variables = d[2:]
		for _, v := range s.Variables {
			if !isVariable(v) {
				reason = "invalid variable name \"" + clip(v) + "\"; want $VARIABLE"
			}
		}
	case "learn":
		s.Timeout = DefaultLearnTimeout
		reason = s.learn(d[2:])
	default:
		reason = invalidParameter(d[1], wantSticky)
	}
	if reason == "" {
		x.group.Sticky, x.settled = s, true
	}
	return reason
}

// isVariable wants $NAME or ${NAME}.
func isVariable(s string) bool { return len(s) > 1 && s[0] == '$' }

func (s *Sticky) cookie(args []string) string {
	s.Name = args[0]
	if s.Name == "" {
		return "empty cookie name"
	}
	seen := map[string]bool{}
	for _, arg := range args[1:] {
		name, value, valued := strings.Cut(arg, "=")
		if seen[name] {
			return "parameter \"" + name + "\" is duplicate"
		}
		seen[name] = true
		if valued && value == "" {
			return "no value for \"" + clip(name) + "\""
		}
		if reason := s.attribute(arg, name, value, valued); reason != "" {
			return reason
		}
	}
	return ""
}

func (s *Sticky) attribute(arg, name, value string, valued bool) string {
	switch {
	case name == "domain" && valued:
		s.Domain = value
	case name == "path" && valued:
		s.Path = value
	case name == "expires" && valued:
		if _, err := ParseSeconds(value); err != nil && value != "max" {
			return invalidParameter(arg, "want max, or "+strings.TrimPrefix(wanted(err), "want "))
		}
		s.Expires = value
	case name == "samesite" && valued:
		if lower := strings.ToLower(value); !strings.Contains(value, "$") && lower != "strict" && lower != "lax" && lower != "none" {
			return invalidParameter(arg, "want samesite=strict|lax|none|$VARIABLE")
		}
		s.SameSite = value
	case arg == "httponly":
		s.HTTPOnly = true
	case arg == "secure":
		s.Secure = true
	default:
		return invalidParameter(arg, wantStickyCookie)
	}
	return ""
}

func (s *Sticky) learn(args []string) string {
	timed := false
	for _, arg := range args {
		name, value, valued := strings.Cut(arg, "=")
		switch {
		case (name == "create" || name == "lookup") && valued:
			if !isVariable(value) {
				return "missing variable in the \"" + name + "\" parameter"
			}
			if name == "create" {
				s.Create = append(s.Create, value)
			} else {
				s.Lookup = append(s.Lookup, value)
			}
		case name == "zone" && valued:
			if reason := s.table(value); reason != "" {
				return reason
			}
		case name == "timeout" && valued:
			d, err := ParseTime(value)
			if err != nil || d == 0 || timed {
				return invalidParameter(arg, "want it once, as a time above 0 such as timeout=10m")
			}
			s.Timeout, timed = d, true
		case arg == "header":
			s.OnHeader = true
		default:
			return invalidParameter(arg, wantStickyLearn)
		}
	}
	switch {
	case s.Lookup == nil:
		return "\"lookup\" parameter is not specified"
	case s.Create == nil:
		return "\"create\" parameter is not specified"
	case s.Zone == "":
		return "\"zone\" parameter is not specified"
	}
	return ""
}

// table reads NAME:SIZE.
func (s *Sticky) table(value string) string {
	name, size, ok := strings.Cut(value, ":")
	if s.Zone != "" {
		return "duplicate zone"
	}
	n, err := ParseSize(size)
	switch {
	case !ok:
		return "zone size is not specified"
	case name == "":
		return "zone name is not specified"
	case err != nil:
		return "invalid zone size: " + err.Error()
	case n < minZone:
		return "zone is too small; want 32k or more"
	}
	s.Zone, s.ZoneSize = name, n
	return ""
}
