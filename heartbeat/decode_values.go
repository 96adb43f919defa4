package heartbeat

import (
	"math"
	"strconv"
	"time"
)

// mistyped passes over a value of the wrong type and notes it.
func (d *decoder) mistyped(f field, name, want string) error {
	raw, err := d.skip(2)
	if err == nil {
		d.wrong.put(f)
		d.add(name, BadType, "has the wrong type", shown(raw), want)
	}
	return err
}

func (d *decoder) text(f field, to *string) error {
	if d.peek() != '"' {
		return d.mistyped(f, fieldNames[f], "a string")
	}
	raw, err := d.str()
	*to = string(raw)
	return err
}

// integer reads a number without fraction or exponent. One that no int64 holds is out of range, not of a wrong type.
func (d *decoder) integer(f field, name string, to *int64) error {
	start := d.pos
	d.space()
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return d.mistyped(f, name, "an integer")
	}
	raw, err := d.number()
	if err != nil {
		return err
	}
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			d.pos = start
			return d.mistyped(f, name, "an integer, written without fraction or exponent")
		}
	}
	*to = parseInt(raw)
	return nil
}

// parseInt is the value of an integer's digits, held at the ends of int64.
func parseInt(raw []byte) int64 {
	var n int64
	negative := raw[0] == '-'
	for _, c := range raw {
		if c == '-' {
			continue
		}
		if n > (math.MaxInt64-9)/10 {
			n = math.MaxInt64
			break
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

func (d *decoder) number32(f field, name string, to *int) error {
	var n int64
	err := d.integer(f, name, &n)
	*to = int(min(max(n, math.MinInt32), math.MaxInt32))
	return err
}

func (d *decoder) float(f field, name string, to *float64) error {
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return d.mistyped(f, name, "a number")
	}
	raw, err := d.number()
	if err != nil {
		return err
	}
	v, _ := strconv.ParseFloat(string(raw), 64) // a number too large gives infinity, which the limit refuses
	if v != 0 {                                 // -0 is 0
		*to = v
	}
	return nil
}

// timestamp has a reason of its own for a text that is no time, since it is a value rather than a type.
func (d *decoder) timestamp() error {
	if d.peek() != '"' {
		return d.mistyped(fSentAt, fieldNames[fSentAt], "a string")
	}
	raw, err := d.str()
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, string(raw))
	if err != nil {
		d.wrong.put(fSentAt)
		d.add(fieldNames[fSentAt], BadSentAt, notAllowed, quoted(string(raw)), allowedSentAt)
		return nil
	}
	d.beat.SentAt = at
	return nil
}

func (d *decoder) duration(f field, to *Duration) error {
	var ok bool
	var shownAs string
	switch c := d.peek(); {
	case c == '"':
		raw, err := d.str()
		if err != nil {
			return err
		}
		*to, ok = parseDuration(string(raw))
		shownAs = quoted(string(raw))
	case c == '-' || '0' <= c && c <= '9':
		raw, err := d.number()
		if err != nil {
			return err
		}
		*to, ok = parseSeconds(raw)
		shownAs = shown(raw)
	default:
		return d.mistyped(f, fieldNames[f], allowedDuration)
	}
	if !ok {
		d.wrong.put(f)
		d.add(fieldNames[f], durationReason(f), notAllowed, shownAs, allowedDuration)
	}
	return nil
}

func durationReason(f field) Reason {
	switch f {
	case fFailTimeout:
		return BadFailTimeout
	case fSlowStart:
		return BadSlowStart
	case fInterval:
		return BadInterval
	default:
		return BadStaleAfter
	}
}

func (d *decoder) tags() error {
	if d.peek() != '[' {
		return d.mistyped(fTags, fieldNames[fTags], "an array of strings")
	}
	return d.array(func() error {
		if d.peek() != '"' {
			return d.mistyped(fTags, fieldNames[fTags], "an array of strings")
		}
		raw, err := d.str()
		// One above the limit is kept, so that the limit is seen to be exceeded.
		if err == nil && len(d.beat.Tags) <= MaxTags {
			d.beat.Tags = append(d.beat.Tags, string(raw))
		}
		return err
	})
}

func (d *decoder) meta() error {
	const want = "an object of strings"
	if d.peek() != '{' {
		return d.mistyped(fMeta, fieldNames[fMeta], want)
	}
	return d.object(func(key []byte) error {
		if d.peek() != '"' {
			return d.mistyped(fMeta, fieldNames[fMeta], want)
		}
		name := string(key) // before str: an unescaped key is a part of the text, but so is every other string
		raw, err := d.str()
		if err != nil {
			return err
		}
		if _, twice := d.beat.Meta[name]; twice {
			d.twice("meta." + cut(name, maxShown))
			return nil
		}
		if d.beat.Meta == nil {
			d.beat.Meta = make(map[string]string)
		}
		if len(d.beat.Meta) <= MaxMeta {
			d.beat.Meta[name] = string(raw)
		}
		return nil
	})
}

func (d *decoder) load() error {
	l := new(Load)
	err := d.figures(fLoad, []figure{
		{"in_flight", func() error { return d.number32(fLoad, "load.in_flight", &l.InFlight) }},
		{"rps", func() error { return d.float(fLoad, "load.rps", &l.RPS) }},
		{"latency_ms", func() error { return d.float(fLoad, "load.latency_ms", &l.LatencyMS) }},
	})
	d.beat.Load = l
	return err
}

func (d *decoder) resources() error {
	r := new(Resources)
	err := d.figures(fResources, []figure{
		{"cpu", func() error { return d.float(fResources, "resources.cpu", &r.CPU) }},
		{"memory", func() error { return d.integer(fResources, "resources.memory", &r.Memory) }},
	})
	d.beat.Resources = r
	return err
}

// figure is one number of load or resources.
type figure struct {
	name string
	read func() error
}

func (d *decoder) figures(f field, known []figure) error {
	if d.peek() != '{' {
		return d.mistyped(f, fieldNames[f], "an object")
	}
	var seen fieldSet
	return d.object(func(key []byte) error {
		for i := range known {
			if known[i].name != string(key) {
				continue
			}
			if seen.has(field(i)) {
				d.twice(fieldNames[f] + "." + known[i].name)
				_, err := d.skip(2)
				return err
			}
			seen.put(field(i))
			return known[i].read()
		}
		name := cut(string(key), maxShown)
		raw, err := d.skip(2)
		if err == nil {
			names := make([]string, len(known))
			for i := range known {
				names[i] = known[i].name
			}
			d.unknown(fieldNames[f]+".", name, shown(raw), names)
		}
		return err
	})
}
