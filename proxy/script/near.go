package script

// nearest is the known name with the fewest single-letter edits, when these are at most a third of the name; "" without
// one.
func (c *Compiler[R]) nearest(name string) string {
	best, least := "", max(len(name)/3, 1)+1
	for _, known := range c.names() {
		if d := distance(name, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// distance is the number of letters to insert, remove or replace, or of neighbours to swap (optimal string alignment).
func distance(a, b string) int {
	var before, last, row []int
	last = make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row = make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
