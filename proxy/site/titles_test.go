package site

import (
	"net/http"
	"testing"
)

// The status line and the page below it say the same: the line is net/http's.
func TestTitlesAreTheReasonPhrases(t *testing.T) {
	for status, title := range titles {
		if want := http.StatusText(status); title != want {
			t.Errorf("%d: the page says %q, the status line %q", status, title, want)
		}
	}
}
