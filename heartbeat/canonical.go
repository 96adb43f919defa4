package heartbeat

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Validate reports all that is wrong with the beat at once, as an *InvalidError.
func (b Beat) Validate() error {
	_, err := b.Canonical()
	return err
}

// Canonical returns the beat in canonical form, or an *InvalidError with all that is wrong with it. What it returns
// shares no memory with b that it had to change.
func (b Beat) Canonical() (Beat, error) {
	d := decoder{beat: b}
	return d.canonical()
}

// canonical checks the beat and fills in what it does not say. Zero values count as absent unless the text gave them.
func (d *decoder) canonical() (Beat, error) {
	d.identity()
	d.address()
	d.url()
	d.status()
	d.serverParameters()
	d.labels()
	d.meters()
	d.times()
	if err := d.err(); err != nil {
		return Beat{}, err
	}
	return d.beat, nil
}

// due reports whether a field has a value to be looked at: set is what the zero value is not.
func (d *decoder) due(f field, set bool) bool { return (set || d.given.has(f)) && !d.wrong.has(f) }

// require reports a field that is neither given nor set.
func (d *decoder) require(f field, set bool, allowed string) {
	if !set && !d.given.has(f) {
		d.add(fieldNames[f], MissingField, "is required", "", allowed)
	}
}

func (d *decoder) refuse(f field, reason Reason, value, allowed string) {
	d.add(fieldNames[f], reason, notAllowed, value, allowed)
}

// within checks an integer field.
func (d *decoder) within(f field, reason Reason, n, low, high int64) {
	if d.due(f, n != 0) && (n < low || n > high) {
		d.add(fieldNames[f], reason, outOfRange, strconv.FormatInt(n, 10), fmt.Sprintf("%d to %d", low, high))
	}
}

func (d *decoder) identity() {
	b := &d.beat
	d.require(fService, b.Service != "", allowedService)
	if d.due(fService, b.Service != "") && !isService(b.Service) {
		d.refuse(fService, BadService, quoted(b.Service), allowedService)
	}
	d.require(fID, b.ID != "", allowedID)
	if d.due(fID, b.ID != "") && !consists(b.ID, lower|upper|digit|inID) {
		d.refuse(fID, BadID, quoted(b.ID), allowedID)
	}
	d.within(fIncarnation, BadIncarnation, b.Incarnation, 1, MaxSerial)
	d.within(fSeq, BadSeq, b.Seq, 1, MaxSerial)
	// One without the other would order nothing, or would make every beat after the first a replay.
	hasInc, hasSeq := b.Incarnation != 0 || d.given.has(fIncarnation), b.Seq != 0 || d.given.has(fSeq)
	if hasInc && !hasSeq {
		d.add(fieldNames[fSeq], MissingField, "is required beside incarnation", "", allowedSerial)
	}
	if hasSeq && !hasInc {
		d.add(fieldNames[fIncarnation], MissingField, "is required beside seq", "", allowedSerial)
	}
	if d.due(fSentAt, !b.SentAt.IsZero()) {
		b.SentAt = b.SentAt.Round(0).UTC()
		if y := b.SentAt.Year(); y < 1970 || y > 9999 {
			d.refuse(fSentAt, BadSentAt, quoted(b.SentAt.Format(time.RFC3339)), allowedSentAt)
		}
	}
}

// address checks scheme, ip and port. Only a goodbye may go without: the registry knows the address already.
func (d *decoder) address() {
	b := &d.beat
	hasIP, hasPort := b.IP != "" || d.given.has(fIP), b.Port != 0 || d.given.has(fPort)
	if b.Status != StatusLeaving || hasIP || hasPort {
		d.require(fIP, hasIP, allowedIP)
		d.require(fPort, hasPort, "1 to 65535")
		if b.Scheme == "" && !d.given.has(fScheme) {
			b.Scheme = DefaultScheme
		}
	}
	if d.due(fScheme, b.Scheme != "") && b.Scheme != "http" && b.Scheme != "https" {
		d.refuse(fScheme, BadScheme, quoted(b.Scheme), "http or https")
	}
	d.within(fPort, BadPort, int64(b.Port), 1, MaxPort)
	if !d.due(fIP, b.IP != "") {
		return
	}
	ip, ok := canonicalIP(b.IP)
	if !ok {
		d.refuse(fIP, BadIP, quoted(b.IP), allowedIP)
		return
	}
	b.IP = ip
}

func (d *decoder) url() {
	b := &d.beat
	if d.due(fURL, b.URL != "") && b.URL != "" && !isPath(b.URL) {
		d.refuse(fURL, BadURL, quoted(b.URL), allowedURL)
	}
}

func (d *decoder) status() {
	b := &d.beat
	if !d.due(fStatus, b.Status != "") {
		if !d.wrong.has(fStatus) {
			b.Status = StatusUp
		}
		return
	}
	switch b.Status {
	case StatusUp, StatusDraining, StatusLeaving:
	default:
		d.refuse(fStatus, BadStatus, quoted(string(b.Status)), "up, draining or leaving")
	}
}

func (d *decoder) serverParameters() {
	b := &d.beat
	if b.Weight == 0 && !d.given.has(fWeight) {
		b.Weight = DefaultWeight
	}
	d.within(fWeight, BadWeight, int64(b.Weight), 1, MaxWeight)
	d.within(fMaxConns, BadMaxConns, int64(b.MaxConns), 0, MaxConnsLimit)
	if b.MaxFails != nil {
		d.within(fMaxFails, BadMaxFails, int64(*b.MaxFails), 0, MaxFailsLimit)
	}
	d.span(fFailTimeout, b.FailTimeout, MinFailTimeout, MaxFailTimeout, time.Second)
	d.span(fSlowStart, b.SlowStart, 0, MaxSlowStart, time.Millisecond)
}

// span checks a duration field: within its limits, and a multiple of step.
func (d *decoder) span(f field, v Duration, low, high, step time.Duration) {
	t := time.Duration(v)
	if !d.due(f, v != 0) || t >= low && t <= high && t%step == 0 {
		return
	}
	unit := "seconds"
	if step == time.Millisecond {
		unit = "milliseconds"
	}
	d.add(fieldNames[f], durationReason(f), outOfRange, v.String(), fmt.Sprintf("%v to %v in whole %s", Duration(low), Duration(high), unit))
}

func (d *decoder) labels() {
	b := &d.beat
	if d.due(fZone, b.Zone != "") && b.Zone != "" && !consists(b.Zone, lower|upper|digit|inService) {
		d.refuse(fZone, BadZone, quoted(b.Zone), allowedZone)
	}
	if d.due(fVersion, b.Version != "") && b.Version != "" && !consists(b.Version, lower|upper|digit|inVersion) {
		d.refuse(fVersion, BadVersion, quoted(b.Version), allowedVersion)
	}
	if !d.wrong.has(fTags) {
		d.checkTags()
	}
	if !d.wrong.has(fMeta) {
		d.checkMeta()
	}
}

func (d *decoder) checkTags() {
	tags := d.beat.Tags
	if len(tags) > MaxTags {
		d.add(fieldNames[fTags], BadTags, "has too many entries", "", fmt.Sprintf("at most %d tags", MaxTags))
		return
	}
	ordered := true
	for i, tag := range tags {
		if !consists(tag, lower|upper|digit|inTag) {
			d.refuse(fTags, BadTags, quoted(tag), allowedTag)
		}
		ordered = ordered && (i == 0 || tags[i-1] < tag)
	}
	if !ordered {
		tags = slices.Clone(tags) // the caller's slice stays as it is
		slices.Sort(tags)
		tags = slices.Compact(tags)
	}
	if len(tags) == 0 {
		tags = nil
	}
	d.beat.Tags = tags
}

func (d *decoder) checkMeta() {
	meta := d.beat.Meta
	if len(meta) > MaxMeta {
		d.add(fieldNames[fMeta], BadMeta, "has too many entries", "", fmt.Sprintf("at most %d entries", MaxMeta))
		return
	}
	total, wrong := 0, false
	for key, value := range meta {
		total += len(key) + len(value)
		wrong = wrong || !isMetaKey(key) || !isMetaValue(value)
	}
	if wrong {
		d.listMeta()
	}
	if total > MaxMetaTotal {
		d.add(fieldNames[fMeta], BadMeta, "is too large", fmt.Sprintf("%d bytes", total), fmt.Sprintf("at most %d bytes in all", MaxMetaTotal))
	}
	if len(meta) == 0 {
		d.beat.Meta = nil
	}
}

// listMeta reports the wrong entries, in a fixed order.
func (d *decoder) listMeta() {
	for _, key := range slices.Sorted(maps.Keys(d.beat.Meta)) {
		value := d.beat.Meta[key]
		if !isMetaKey(key) {
			d.add(fieldNames[fMeta], BadMeta, "has a key that is not allowed", quoted(key), "keys of "+allowedMetaKey)
		} else if !isMetaValue(value) {
			d.add("meta."+key, BadMeta, notAllowed, quoted(value), fmt.Sprintf("text of at most %d bytes without control characters", MaxMetaValue))
		}
	}
}

// meters checks load and resources.
func (d *decoder) meters() {
	b := &d.beat
	if b.Load != nil && !d.wrong.has(fLoad) {
		l := *b.Load
		d.meter("load.in_flight", BadLoad, float64(l.InFlight), MaxInFlight)
		d.meter("load.rps", BadLoad, l.RPS, MaxRPS)
		d.meter("load.latency_ms", BadLoad, l.LatencyMS, MaxLatencyMS)
		if l == (Load{}) {
			b.Load = nil
		}
	}
	if b.Resources != nil && !d.wrong.has(fResources) {
		r := *b.Resources
		d.meter("resources.cpu", BadResources, r.CPU, MaxCPU)
		d.meter("resources.memory", BadResources, float64(r.Memory), MaxMemory)
		if r == (Resources{}) {
			b.Resources = nil
		}
	}
}

func (d *decoder) meter(name string, reason Reason, v, high float64) {
	if !(v >= 0 && v <= high) || math.Signbit(v) { // so NaN is refused, and -0, which is 0 twice over
		d.add(name, reason, outOfRange, strconv.FormatFloat(v, 'g', -1, 64), fmt.Sprintf("0 to %.0f", high))
	}
}

// times checks interval and stale_after, and that the two leave room for a beat that is late by half an interval.
func (d *decoder) times() {
	b := &d.beat
	if b.Interval == 0 && !d.given.has(fInterval) {
		b.Interval = Duration(DefaultInterval)
	}
	before := len(d.list) + d.omitted
	d.span(fInterval, b.Interval, MinInterval, MaxInterval, time.Millisecond)
	d.span(fStaleAfter, b.StaleAfter, MinStaleAfter, MaxStaleAfter, time.Millisecond)
	if len(d.list)+d.omitted != before || d.wrong.has(fInterval) || d.wrong.has(fStaleAfter) {
		return
	}
	least := time.Duration(b.Interval) * 3 / 2
	switch {
	case b.StaleLimit() >= least:
	case b.StaleAfter != 0:
		d.add(fieldNames[fStaleAfter], BadStaleAfter, "is too short for the interval", b.StaleAfter.String(), fmt.Sprintf("at least 1.5 intervals (%v)", Duration(least)))
	default:
		d.add(fieldNames[fInterval], BadInterval, "is too long without a stale_after", b.Interval.String(),
			fmt.Sprintf("at most %v, or a stale_after of at least 1.5 intervals (%v) beside it", Duration(MaxStaleLimit*2/3), Duration(least)))
	}
}
