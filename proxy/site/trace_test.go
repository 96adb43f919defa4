package site

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

func TestTrace(t *testing.T) {
	w := newWorld(t, `error_page 404 =200 /e;
		server { listen 127.0.0.1:8080; server_name one.example;
			location /a { rewrite ^/a(.*) /b$1 last; }
			location /b { try_files $uri @n; }
			location @n { return 404; }
			location /e { return 200 e; }
		}`)
	var steps []string
	ctx := WithTrace(context.Background(), func(s Step) { steps = append(steps, fmt.Sprintf("%s %s :%d", s.What, s.Text, s.Line)) })
	c := &collector{}
	w.site.Handle(ctx, w, requestOf("GET /a1 one.example"), c)
	want := []string{
		"server one.example :3", "location /a :4", "rewrite rewrite ^/a(.*) /b$1 last; :4", "location /b :5", "named @n :6", "return return 404; :6",
		"error_page 404 /e :0", "redirect /e :0", "location /e :7", "return return 200 e; :7",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("got:")
		for _, s := range steps {
			t.Error(s)
		}
	}
	if got := c.line(); got != "200 | e" {
		t.Error(got)
	}
}
