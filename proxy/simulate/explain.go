package simulate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// Ask is a request to be explained. The zero value of all but Target is a GET from 127.0.0.1 to localhost.
type Ask struct {
	Method string
	Target string // such as /a?b=c
	Host   string
	Fields []forward.Field
	Client netip.Addr
	// Servers say what servers do, each as a line of a scenario: SERVER… BEHAVIOUR. Others answer 200.
	Servers []string
}

// Explain says what would become of a request, without sending it: which server and location take it, which upstream it
// goes to, and for each server of that upstream its weights before and after the pick and why it was passed over or won. Of
// an upstrand it says where the walk begins, what is passed over, why it goes on after a stop and why it ends. State is that
// of a proxy that has just started: nothing has failed, nobody has been picked, nothing is blacklisted.
func Explain(ctx context.Context, w io.Writer, f *proxy.File, a Ask) (err error) {
	t, err := a.template()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	defer func() { err = errors.Join(err, out.Flush()) }()
	world := newWorld(1)
	v := &visit{}
	p, err := world.proxy(func(e *balance.Explanation) {
		fmt.Fprintf(out, "pick in upstream %s, %s\n", e.Upstream, or(e.Method, "round robin"))
		printWhy(out, e)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Shutdown(context.Background())) }()
	if err := world.load(p, f); err != nil {
		return err
	}
	if err := a.behave(&run{world: world, proxy: p}); err != nil {
		return err
	}
	v.client.keep = true
	fmt.Fprintf(out, "%s %s of host %s from %s\n", t.method, a.Target, t.host, t.from.Addr())
	world.send(traced(ctx, out), p, t.request(0), v)
	tellAnswer(out, v)
	return nil
}

// behave makes servers do what they are said to do.
func (a Ask) behave(r *run) error {
	for _, line := range a.Servers {
		args, err := words(line)
		if err != nil {
			return fmt.Errorf("server %q: %w", line, err)
		}
		s, err := parseServer(nil, args)
		if errors.Is(err, errUsage) {
			return fmt.Errorf("server %q: want %s", line, commands["server"].usage)
		}
		if err == nil {
			err = s.do(r)
		}
		if err != nil {
			return fmt.Errorf("server %q: %w", line, err)
		}
	}
	return nil
}

func (a Ask) template() (*template, error) {
	args := []string{or(a.Method, "GET"), a.Target}
	if a.Host != "" {
		args = append(args, "host="+a.Host)
	}
	if a.Client.IsValid() {
		args = append(args, "from="+a.Client.String())
	}
	for _, f := range a.Fields {
		args = append(args, "header="+string(f.Name)+":"+string(f.Value))
	}
	t, err := parseTemplate(args)
	if errors.Is(err, errUsage) {
		return nil, fmt.Errorf("%q: want a target that begins with /", a.Target)
	}
	return t, err
}

// tellAnswer says what the client would get when its servers are well, or do as was said.
func tellAnswer(w io.Writer, v *visit) {
	for i := range v.tries[:max(0, len(v.tries)-1)] {
		t := &v.tries[i]
		fmt.Fprintf(w, "went to %s (%s): %s\n", t.peer.ID(), t.addr, t.result)
	}
	switch {
	case len(v.tries) > 0:
		t := &v.tries[len(v.tries)-1]
		fmt.Fprintf(w, "goes to %s (%s) as %s %s; answered %d\n", t.peer.ID(), t.addr, t.method, t.target, v.client.status)
	case v.client.status == 0:
		fmt.Fprintln(w, "goes nowhere: the connection is closed without an answer")
	default:
		fmt.Fprintf(w, "goes nowhere: answered %d here\n", v.client.status)
	}
	for _, f := range v.client.fields {
		if string(f.Name) == "Location" || string(f.Name) == "Set-Cookie" {
			fmt.Fprintf(w, "  %s: %s\n", f.Name, f.Value)
		}
	}
}

// traced is a context by which the decisions before the pick are told, one line each.
func traced(ctx context.Context, w io.Writer) context.Context {
	return site.WithTrace(ctx, func(s site.Step) {
		where := ""
		if s.File != "" {
			where = fmt.Sprintf("  (%s:%d)", s.File, s.Line)
		}
		fmt.Fprintf(w, "%-10s %s%s\n", s.What, or(s.Text, "(no name)"), where)
	})
}
