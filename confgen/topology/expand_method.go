package topology

// redefine puts a method into force. One after another method, sticky or extend_single_peers replaces all of it, with
// a warning; so put the method first.
func (x *upstreamExpansion) redefine(m Method, noBackup bool) {
	if x.settled {
		x.problem(x.line, "load balancing method redefined: what was said of it above has no effect", true)
	}
	x.group.Method, x.group.Sticky, x.group.CountSingle = m, nil, false
	x.settled, x.noBackup = true, noBackup
}

// plainMethod is least_conn and ip_hash.
func (x *upstreamExpansion) plainMethod(d Directive) string {
	if len(d) != 1 {
		return "want " + d[0] + " without arguments"
	}
	x.redefine(Method{Name: d[0]}, d[0] == "ip_hash")
	return ""
}

func (x *upstreamExpansion) leastTime(d Directive) string {
	const want = "want least_time header|last_byte [inflight]"
	if len(d) < 2 || len(d) > 3 {
		return want
	}
	if d[1] != "header" && d[1] != "last_byte" {
		return "invalid value \"" + clip(d[1]) + "\"; " + want
	}
	if len(d) == 3 && d[2] != "inflight" {
		return invalidParameter(d[2], want)
	}
	x.redefine(Method{Name: d[0], LastByte: d[1] == "last_byte", Inflight: len(d) == 3}, false)
	return ""
}

func (x *upstreamExpansion) hash(d Directive) string {
	const want = "want hash KEY [consistent]"
	if len(d) < 2 || len(d) > 3 {
		return want
	}
	if len(d) == 3 && d[2] != "consistent" {
		return invalidParameter(d[2], want)
	}
	x.redefine(Method{Name: d[0], Key: d[1], Consistent: len(d) == 3}, true)
	return ""
}

func (x *upstreamExpansion) random(d Directive) string {
	const want = "want random [two [least_conn]]"
	if len(d) > 3 {
		return want
	}
	if len(d) > 1 && d[1] != "two" {
		return invalidParameter(d[1], want)
	}
	if len(d) > 2 && d[2] != "least_conn" {
		return invalidParameter(d[2], want)
	}
	x.redefine(Method{Name: d[0], Two: len(d) > 1}, true)
	return ""
}

// extend is extend_single_peers.
func (x *upstreamExpansion) extend(d Directive) string {
	if len(d) != 1 {
		return "want extend_single_peers without arguments"
	}
	if !x.once(d[0]) {
		return "directive is duplicate"
	}
	x.group.CountSingle, x.settled = true, true
	return ""
}
