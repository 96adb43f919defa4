package listener

import "time"

// onset turns a row of failures into one log line when it begins and one when it ends.
type onset struct{ at time.Time }

// begins notes a failure and reports whether it is the first of its row.
func (o *onset) begins() bool {
	if !o.at.IsZero() {
		return false
	}
	o.at = time.Now()
	return true
}

// ends notes a success; ok says that it ended a row of failures, which lasted that long.
func (o *onset) ends() (lasted time.Duration, ok bool) {
	if o.at.IsZero() {
		return 0, false
	}
	lasted, o.at = time.Since(o.at), time.Time{}
	return lasted, true
}
