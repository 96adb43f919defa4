package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustDeclare(t *testing.T, s *Store, d Declare) DeclaredFile {
	t.Helper()
	if d.Author == "" {
		d.Author = "ops"
	}
	f, changed, err := s.Declare(t.Context(), d)
	if err != nil || !changed {
		t.Fatalf("declare %s: changed %v, %v", d.Name, changed, err)
	}
	return f
}

// said is a declaration in few words.
func said(d Declaration) string {
	var parts []string
	for _, f := range d.Files {
		parts = append(parts, fmt.Sprintf("%s@%d=%s", f.Name, f.Revision, f.Text))
	}
	return fmt.Sprintf("%d: %s", d.Revision, strings.Join(parts, " "))
}

func TestADeclaredFileIsKeptWithItsHistory(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return now }}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if d, err := s.Declared(ctx); err != nil || said(d) != "0: " {
			t.Fatalf("of nothing: %s %v", said(d), err)
		}
		first := mustDeclare(t, s, Declare{Name: "main", Text: "a ä\n", Author: "joe@host", Comment: "first"})
		want := DeclaredFile{Name: "main", Revision: 1, Text: "a ä\n", Size: 5, Author: "joe@host", Comment: "first", At: now.UnixMicro(), RegistryRevision: 1}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Error(diff)
		}
		mustDeclare(t, s, Declare{Name: "canary", Text: "c"})
		mustDeclare(t, s, Declare{Name: "main", Text: "b"})
		mustDeclare(t, s, Declare{Name: "canary", Delete: true, Comment: "over"})
		d, err := s.Declared(ctx)
		if err != nil || said(d) != "4: main@3=b" || !d.Last.Deleted || d.Last.Name != "canary" {
			t.Errorf("%s, last %+v, %v", said(d), d.Last, err)
		}
		mustDeclare(t, s, Declare{Name: "canary", Text: ""})
		if d, err = s.Declared(ctx); err != nil || said(d) != "5: canary@5= main@3=b" {
			t.Errorf("an empty file is one, too: %s, %v", said(d), err)
		}
		checkHistory(t, s)
	})
}

func checkHistory(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	page, err := s.DeclaredHistory(ctx, "canary", 0, 2)
	if err != nil || len(page) != 2 || page[0].Revision != 5 || page[1].Revision != 4 || !page[1].Deleted || page[1].Comment != "over" || page[1].Text != "" {
		t.Errorf("history %+v, %v", page, err)
	}
	if page, err = s.DeclaredHistory(ctx, "canary", 4, 2); err != nil || len(page) != 1 || page[0].Revision != 2 || page[0].Size != 1 || page[0].Deleted {
		t.Errorf("next page %+v, %v", page, err)
	}
	if page, err = s.DeclaredHistory(ctx, "nope", 0, 2); err != nil || len(page) != 0 {
		t.Errorf("of nothing %+v, %v", page, err)
	}
	for _, c := range []struct {
		name     string
		revision int64
		text     string
		missing  bool
	}{{"main", 0, "b", false}, {"main", 1, "a ä\n", false}, {"main", 2, "", true}, {"nope", 0, "", true}, {"canary", 4, "", false}} {
		f, err := s.DeclaredAt(ctx, c.name, c.revision)
		if c.missing != errors.Is(err, ErrNotFound) || f.Text != c.text || (err != nil) != c.missing {
			t.Errorf("%s at %d: %+v %v", c.name, c.revision, f, err)
		}
	}
	mustDeclare(t, s, Declare{Name: "canary", Delete: true})
	if _, err := s.DeclaredAt(ctx, "canary", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted file as it is now: %v", err)
	}
}

func TestDeclaringIsAChangeOfTheRegistry(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		before, err := s.Snapshot(ctx)
		if err != nil || before.Declared == nil || before.Declared.Revision != 0 {
			t.Fatalf("%+v, %v", before.Declared, err)
		}
		f := mustDeclare(t, s, Declare{Name: "main", Text: "x", Author: "joe", Comment: "why", Detail: []byte(`{"a":1}`)})
		now, err := s.Revision(ctx)
		if err != nil || now != before.Revision+1 || f.RegistryRevision != now {
			t.Errorf("revision %d, the file's %d, before %d, %v", now, f.RegistryRevision, before.Revision, err)
		}
		ch, err := s.Changes(ctx, before.Revision)
		if err != nil || ch.Declared == nil || said(*ch.Declared) != "1: main@1=x" {
			t.Errorf("changes %+v, %v", ch.Declared, err)
		}
		if _, err := s.db.Exec(`UPDATE revision SET n = n + 1 WHERE id = 1`); err != nil { // something else changed
			t.Fatal(err)
		}
		if ch, err = s.Changes(ctx, now); err != nil || ch.Declared != nil {
			t.Errorf("nothing changed: %+v, %v", ch.Declared, err)
		}
		if snap, err := s.Snapshot(ctx); err != nil || said(*snap.Declared) != "1: main@1=x" {
			t.Errorf("snapshot %+v, %v", snap.Declared, err)
		}
		events, err := s.ListEvents(ctx, EventFilter{Kinds: []string{EventTopologyDeclared}})
		if err != nil || len(events) != 1 {
			t.Fatalf("%+v, %v", events, err)
		}
		e := events[0]
		if e.Actor != "joe" || e.Cause != "main declared by joe (revision 1): why" || string(e.Detail) != `{"a":1}` || e.Revision != now {
			t.Errorf("%+v", e)
		}
	})
}

func TestWhatDidNotChangeIsNoRevision(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		mustDeclare(t, s, Declare{Name: "main", Text: "x"})
		at, _ := s.Revision(t.Context())
		f, changed, err := s.Declare(t.Context(), Declare{Name: "main", Text: "x", Author: "other"})
		if err != nil || changed || f.Revision != 1 || f.Author != "ops" {
			t.Errorf("%+v %v %v", f, changed, err)
		}
		if now, _ := s.Revision(t.Context()); now != at {
			t.Errorf("the registry went from %d to %d", at, now)
		}
		if _, _, err := s.Declare(t.Context(), Declare{Name: "nope", Delete: true, Author: "x"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("a deletion of nothing: %v", err)
		}
	})
}

func TestOneOfTwoWhoExpectTheSameWins(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		mustDeclare(t, s, Declare{Name: "main", Text: "0"})
		expected := int64(1)
		const n = 8
		var wg sync.WaitGroup
		var mu sync.Mutex
		won, lost := 0, 0
		for i := range n {
			wg.Go(func() {
				_, changed, err := s.Declare(context.Background(), Declare{Name: "main", Text: fmt.Sprint("by ", i), Author: fmt.Sprint(i), Expected: &expected})
				mu.Lock()
				defer mu.Unlock()
				var conflict *ConflictError
				switch {
				case err == nil && changed:
					won++
				case errors.As(err, &conflict) && errors.Is(err, ErrConflict) && conflict.Last.Revision == 2 && conflict.Expected == 1:
					lost++
				default:
					t.Errorf("%v %v", changed, err)
				}
			})
		}
		wg.Wait()
		if won != 1 || lost != n-1 {
			t.Errorf("%d won, %d lost", won, lost)
		}
		if d, err := s.Declared(t.Context()); err != nil || d.Revision != 2 {
			t.Errorf("%+v %v", d, err)
		}
	})
}

func TestWhoExpectsNothingIsNumberedInOrder(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				if _, _, err := s.Declare(context.Background(), Declare{Name: fmt.Sprint("f", i%2), Text: fmt.Sprint(i), Author: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d, err := s.Declared(t.Context())
		if at, _ := s.Revision(t.Context()); err != nil || d.Revision != 6 || at != 6 || len(d.Files) != 2 {
			t.Errorf("%s, the registry at %d, %v", said(d), at, err)
		}
	})
}

func TestWhatCanNotBeDeclared(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		for what, d := range map[string]Declare{
			"no name": {Text: "x", Author: "a"}, "no author": {Name: "main", Text: "x"}, "long name": {Name: strings.Repeat("x", 65), Author: "a"},
			"too large": {Name: "main", Text: strings.Repeat("x", MaxDeclared+1), Author: "a"}, "no text": {Name: "main", Text: "a\xff", Author: "a"},
			"a NUL": {Name: "main", Text: "a\x00", Author: "a"}, "odd name": {Name: "ü", Author: "a"},
		} {
			if _, _, err := s.Declare(t.Context(), d); err == nil {
				t.Errorf("%s was declared", what)
			}
		}
		large := mustDeclare(t, s, Declare{Name: "large", Text: strings.Repeat("ä", MaxDeclared/2)})
		if large.Size != MaxDeclared {
			t.Errorf("%d bytes", large.Size)
		}
		for i := range MaxDeclaredFiles - 1 {
			mustDeclare(t, s, Declare{Name: fmt.Sprint("f", i), Text: "x"})
		}
		if _, _, err := s.Declare(t.Context(), Declare{Name: "one-more", Text: "x", Author: "a"}); !errors.Is(err, ErrTooMany) {
			t.Errorf("one too many: %v", err)
		}
		mustDeclare(t, s, Declare{Name: "f0", Text: "still changes"})
		mustDeclare(t, s, Declare{Name: "f0", Delete: true})
		mustDeclare(t, s, Declare{Name: "one-more", Text: "x"})
	})
}
