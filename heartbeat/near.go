package heartbeat

import "strings"

// Messages of problems with a value.
const (
	notAllowed = "is not allowed"
	outOfRange = "is out of range"
)

// allowedFields is the answer to a name that resembles no field.
var allowedFields = strings.Join(fieldNames[:], ", ")

// twice reports a field that is given more than once.
func (d *decoder) twice(name string) {
	d.add(name, DuplicateField, "is given more than once", "", "once")
}

// unknown reports a field that is none of the known ones, which stand under prefix, and names the one that was probably
// meant. The value says what the sender wanted with it.
func (d *decoder) unknown(prefix, name, value string, known []string) {
	if len(d.list) >= maxProblems { // a name costs more to look up than to read
		d.omitted++
		return
	}
	message, allowed := "is no field that this version knows (update listeners before senders)", strings.Join(known, ", ")
	if near := nearest(name, known); near != "" {
		message, allowed = "is no field (did you mean "+prefix+near+"?)", prefix+near
	}
	d.add(prefix+name, UnknownField, message, value, allowed)
}

// nearest is the known name that is at most two edits away and no further than a third of its length, case aside; empty
// when there is none. A longer name is not looked at: it may be any text.
func nearest(name string, known []string) string {
	name = strings.ToLower(name)
	best, distance := "", 3
	for _, k := range known {
		if len(name) > len(k)+2 {
			continue
		}
		if d := edits(name, k); d < distance && d <= max(1, len(k)/3) {
			best, distance = k, d
		}
	}
	return best
}

// edits is how many characters must be added, removed, changed or swapped with their neighbour to make b of a.
func edits(a, b string) int {
	var rows [3][]int // before the last, the last, this one
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		older, last, row := rows[0], rows[1], rows[2]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, older
	}
	return rows[1][len(b)]
}
