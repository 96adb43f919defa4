package balance

// times is what a peer is known to take, kept for least_time. All are milliseconds; the upstream's mutex guards them.
type times struct {
	header   int64 // average from the pick to the head of the answer; 0: no sample yet
	response int64 // average from the pick to the last byte of the answer; 0: no sample yet
	inflight int64 // average of the mean ages seen of the requests in flight; 0: none seen yet

	unanswered int   // requests in flight
	openedAt   int64 // sum of the moments at which those began
}

// open counts a request that begins at moment ms as in flight.
func (t *times) open(ms int64) {
	t.unanswered++
	t.openedAt += ms
}

// answered takes a request that began at moment began out of those in flight.
func (t *times) answered(began int64) {
	t.unanswered--
	t.openedAt -= began
}

// sample takes over what an answer took that went to the client. Answers that were left for another attempt are none.
func (t *times) sample(header, response int64) {
	t.header = average(t.header, header)
	t.response = average(t.response, response)
}

// age feeds the average age of the requests in flight with what it is at moment ms, and gives it. There must be some.
func (t *times) age(ms int64) int64 {
	n := int64(t.unanswered)
	t.inflight = average(t.inflight, (n*ms-t.openedAt)/n)
	return t.inflight
}

// average moves an average towards a sample by a twentieth of what is between them, rounded to whole milliseconds; an
// average of 0 is none yet. The conversions keep every compiler from fusing the steps, which would round differently.
func average(avg, sample int64) int64 {
	if avg == 0 {
		return sample
	}
	return int64(0.5 + float64(0.05*float64(sample)) + float64(0.95*float64(avg)))
}
