package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// feature is one thing switched on, and the requests that meet it.
type feature struct {
	name    string
	door    door
	mode    string
	rewrite func(conf string, c *contender) string
}

// inLocation adds lines to each location.
func inLocation(lines string) func(string, *contender) string {
	return func(conf string, _ *contender) string {
		return strings.ReplaceAll(conf, "location / {", "location / { "+lines)
	}
}

// atTop adds lines before everything and lines to each location.
func atTop(top, lines string) func(string, *contender) string {
	return func(conf string, c *contender) string { return top + "\n" + inLocation(lines)(conf, c) }
}

var featureList = []feature{
	{name: "nothing", door: plain, mode: "h1"}, // says how far chance goes
	{name: "access log", door: logged, mode: "h1"},
	{name: "access log, every 10th", door: logged, mode: "h1", rewrite: func(conf string, _ *contender) string {
		return "split_clients $request_id $bench_logged { 10% 1; * 0; }\n" + strings.Replace(conf, "access.log;", "access.log combined if=$bench_logged;", 1)
	}},
	{name: "5 proxy_set_header", door: plain, mode: "h1", rewrite: inLocation(`proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; ` +
		`proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;`)},
	{name: "3 add_header", door: plain, mode: "h1", rewrite: inLocation(`add_header X-Frame-Options DENY; add_header X-Upstream $upstream_addr; add_header X-Time $request_time;`)},
	{name: "20 locations by regex", door: plain, mode: "h1", rewrite: func(conf string, _ *contender) string {
		var more strings.Builder
		for i := range 20 {
			fmt.Fprintf(&more, "location ~ ^/api/v%d/.*\\.json$ { return 204; } ", i)
		}
		return strings.ReplaceAll(conf, "location / {", more.String()+"location / {")
	}},
	{name: "10 servers", door: plain, mode: "h1", rewrite: func(conf string, _ *contender) string {
		at := strings.Index(conf, "server ")
		end := at + strings.Index(conf[at:], ";") + 1
		return conf[:at] + strings.Repeat(conf[at:end]+" ", 10) + conf[end:]
	}},
	{name: "10 servers, least_conn", door: plain, mode: "h1", rewrite: func(conf string, _ *contender) string {
		at := strings.Index(conf, "server ")
		end := at + strings.Index(conf[at:], ";") + 1
		return conf[:at] + "least_conn; " + strings.Repeat(conf[at:end]+" ", 10) + conf[end:]
	}},
	{name: "limit_req, limit_conn", door: plain, mode: "h1", rewrite: atTop(
		"limit_req_zone $binary_remote_addr zone=r:1m rate=1000000r/s; limit_conn_zone $binary_remote_addr zone=c:1m;",
		"limit_req zone=r burst=100000 nodelay; limit_conn c 10000;")},
	{name: "buffering off", door: plain, mode: "h1", rewrite: inLocation("proxy_buffering off; proxy_request_buffering off;")},
	{name: "TLS", door: secure, mode: "tls"},
	{name: "HTTP/2", door: secure, mode: "h2"},
}

// pair is a feature's rounds, each with one of the plain proxy right beside it.
type pair struct{ with, without cell }

// features measures us against ourselves, one thing at a time (-rows: which), with small requests on 64 connections.
func features(ctx context.Context, b *bench) error {
	base, err := upstrand(ctx, b, variant{name: "feature-none"})
	if err != nil {
		return err
	}
	list := []*contender{base}
	defer func() { stopAll(list) }()
	pairs := map[string]*pair{}
	var todo []feature
	for _, f := range featureList {
		if b.rows.MatchString(f.name) {
			todo = append(todo, f)
		}
	}
	for i, f := range todo {
		pairs[f.name] = &pair{}
		c, err := upstrand(ctx, b, variant{name: fmt.Sprintf("feature-%d", i), rewrite: f.rewrite})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // of this feature: the others can still be measured
			pairs[f.name].with = cell{rounds: make([]figures.Result, 1), errs: []error{err}}
			list = append(list, nil)
			continue
		}
		list = append(list, c)
	}
	for round := range b.rounds {
		for i, f := range todo {
			if list[i+1] == nil {
				continue
			}
			if err := b.beside(ctx, base, list[i+1], f, pairs[f.name], round%2 == 1); err != nil {
				return err
			}
		}
		fmt.Fprintf(b.progress(), "round %d of %d\n", round+1, b.rounds)
	}
	return reportFeatures(b, todo, pairs)
}

// beside gives a feature and the plain proxy one burst each. The error is ctx's.
func (b *bench) beside(ctx context.Context, base, with *contender, f feature, p *pair, swap bool) error {
	r := row{name: f.name, door: f.door, mode: f.mode, conns: 64, length: small}
	if f.mode == "h2" {
		r.conns, r.streams = 8, 8
	}
	one := func() { p.with.add(b.burst(ctx, with, r)) }
	other := func() { p.without.add(b.burst(ctx, base, row{door: plain, mode: "h1", conns: 64, length: small})) }
	if swap {
		one, other = other, one
	}
	one()
	other()
	return ctx.Err()
}

func reportFeatures(b *bench, todo []feature, pairs map[string]*pair) error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nGET 128 B, 64 connections, upstrand with one thing more\tµs/request\tof it user\t× plain\tlow–high\tcounted\n")
	cost := func(r figures.Result) float64 { return micro(r.CPU.Total().Nanoseconds(), r.Requests) }
	for _, f := range todo {
		c := &pairs[f.name].with
		own := figures.Summarise(c.each(cost))
		if own.N == 0 {
			_, first := c.trouble()
			fmt.Fprintf(w, "%s\t%s\n", f.name, oneLine(first))
			continue
		}
		user := figures.Summarise(c.each(func(r figures.Result) float64 { return micro(r.CPU.User.Nanoseconds(), r.Requests) }))
		ratio := figures.Summarise(figures.Ratios(c.each(cost), pairs[f.name].without.each(cost)))
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%s\t%s\t%d/%d\n", f.name, own.Median, user.Median, ratioText(ratio), spreadText(ratio), own.N, len(c.rounds))
	}
	return w.Flush()
}
