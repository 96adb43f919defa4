package topology

// keepalive is keepalive COUNT [local]. Of local nothing is left to do: connections are never shared between locations
// of different settings.
func (x *upstreamExpansion) keepalive(d Directive) string {
	const want = "want keepalive CONNECTIONS [local]"
	if len(d) < 2 || len(d) > 3 {
		return want
	}
	if !x.once("keepalive") {
		return "is duplicate"
	}
	n, err := ParseNumber(d[1], 0)
	if err != nil {
		return "invalid value: " + err.Error()
	}
	if len(d) == 3 && d[2] != "local" {
		return invalidParameter(d[2], want)
	}
	x.group.Keepalive.Idle = n
	return ""
}

func (x *upstreamExpansion) keepaliveRequests(d Directive) string {
	if len(d) != 2 || !x.once(d[0]) {
		return "want it once, as keepalive_requests NUMBER"
	}
	n, err := ParseNumber(d[1], 1)
	if err != nil {
		return "invalid number: " + err.Error()
	}
	x.group.Keepalive.Requests = n
	return ""
}

// keepaliveTime is keepalive_time and keepalive_timeout.
func (x *upstreamExpansion) keepaliveTime(d Directive) string {
	if len(d) != 2 || !x.once(d[0]) {
		return "want it once, as " + d[0] + " TIME"
	}
	t, err := ParseTime(d[1])
	if err == nil && t == 0 {
		return "0 would keep no connection; want a time above 0, or keepalive 0"
	}
	if err != nil {
		return "invalid value: " + err.Error()
	}
	if d[0] == "keepalive_time" {
		x.group.Keepalive.Time = t
	} else {
		x.group.Keepalive.Timeout = t
	}
	return ""
}

// zoneLine is zone NAME [SIZE]. All of our state is shared already; what is left of it is that nginx wants one for
// names resolved at run time.
func (x *upstreamExpansion) zoneLine(d Directive) string {
	if len(d) < 2 || len(d) > 3 {
		return "want zone NAME [SIZE]"
	}
	if d[1] == "" {
		return "invalid zone name \"\""
	}
	if len(d) == 3 {
		n, err := ParseSize(d[2])
		if err != nil {
			return "invalid zone size: " + err.Error()
		}
		if n < minZone {
			return "zone \"" + clip(d[1]) + "\" is too small; want 32k or more"
		}
	}
	x.zone = true
	return ""
}
