package simulate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

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
	// Scheme (http or https) and Port choose the listen, as a URL's do; empty and 0: neither is said.
	Scheme string
	Port   int
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
	told := &telling{w: out, visit: v}
	p, err := world.proxy(func(e *balance.Explanation) {
		told.tries()
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
	said, err := a.arrive(t, p.Listens())
	if err != nil {
		return err
	}
	if said != "" {
		fmt.Fprintln(out, said)
	}
	v.client.keep = true
	fmt.Fprintf(out, "%s %s of host %s from %s\n", t.method, a.Target, t.host, t.from.Addr())
	world.send(site.WithTrace(ctx, told.step), p, t.request(0), v)
	told.answer()
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
	if a.Scheme != "" {
		args = append(args, "scheme="+a.Scheme)
	}
	if a.Port != 0 {
		args = append(args, fmt.Sprintf("port=%d", a.Port))
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

// telling is what has been said of a request.
type telling struct {
	w     io.Writer
	visit *visit
	told  int    // of the visit's tries
	page  string // the error_page that took the answer's place last; empty: none did
	asked int    // how many had been asked by then
}

// step tells a decision, and before it what came of the servers that were asked.
func (t *telling) step(s site.Step) {
	t.tries()
	if s.What == "error_page" {
		t.page, t.asked = s.Text, len(t.visit.tries)
	}
	where := ""
	if s.File != "" {
		where = fmt.Sprintf("  (%s:%d)", s.File, s.Line)
	}
	fmt.Fprintf(t.w, "%-10s %s%s\n", s.What, or(s.Text, "(no name)"), where)
}

// tries tells of the servers that were asked since it was last called.
func (t *telling) tries() {
	for ; t.told < len(t.visit.tries); t.told++ {
		try := &t.visit.tries[t.told]
		what := ""
		if try.method != "" {
			what = fmt.Sprintf(" as %s %s", try.method, try.target)
		}
		fmt.Fprintf(t.w, "goes to %s (%s)%s: %s\n", try.peer.ID(), try.addr, what, or(try.result, "no answer"))
	}
}

// answer says what the client gets, and of whom.
func (t *telling) answer() {
	t.tries()
	status, n := t.visit.client.status, len(t.visit.tries)
	if n == 0 {
		fmt.Fprintln(t.w, "goes nowhere")
	}
	switch {
	case status == 0:
		fmt.Fprintln(t.w, "the connection is closed without an answer")
	case t.page != "" && t.asked == n:
		fmt.Fprintf(t.w, "answered %d here, by error_page %s\n", status, t.page)
	case n > 0 && t.visit.tries[n-1].result == strconv.Itoa(status):
		fmt.Fprintf(t.w, "answered %d by %s\n", status, t.visit.tries[n-1].peer.ID())
	case t.page != "" && isStatus(t.visit.tries[n-1].result):
		fmt.Fprintf(t.w, "answered %d by error_page %s, with what %s answered\n", status, t.page, t.visit.tries[n-1].peer.ID())
	default:
		fmt.Fprintf(t.w, "answered %d here\n", status)
	}
	for _, f := range t.visit.client.fields {
		if string(f.Name) == "Location" || string(f.Name) == "Set-Cookie" {
			fmt.Fprintf(t.w, "  %s: %s\n", f.Name, f.Value)
		}
	}
}

// isStatus tells whether a server answered.
func isStatus(result string) bool {
	_, err := strconv.Atoi(result)
	return err == nil
}
