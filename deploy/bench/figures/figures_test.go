package figures

import (
	"math"
	"os"
	"testing"
	"time"
)

func TestStatOfANameWithBracketsAndBlanks(t *testing.T) {
	got, err := parseStat("42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 17 25 3 4 20 0 1 0 100 1000 10")
	if want := (CPU{User: 170 * time.Millisecond, System: 250 * time.Millisecond}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestStatThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "42 (x", "42 (x) S 1 2 3", "42 (x) S 1 42 42 0 -1 4194560 100 0 0 0 a 25 3 4", "42 (x) S 1 42 42 0 -1 4194560 100 0 0 0 1 b 3 4"} {
		if got, err := parseStat(text); err == nil {
			t.Errorf("%q gives %v, wanted an error", text, got)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs Linux's /proc")
	}
	before, err := CPUOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	spent := 0
	for end := time.Now().Add(60 * time.Millisecond); time.Now().Before(end); {
		spent++
	}
	after, err := CPUOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used := after.Sub(before).Total(); used < tick || used > time.Minute {
		t.Errorf("60 ms of work (%d steps) count as %v", spent, used)
	}
	if n, err := ResidentOf(os.Getpid()); err != nil || n < 1<<20 || n > 1<<36 {
		t.Errorf("resident memory is %d bytes, %v", n, err)
	}
}

func TestResident(t *testing.T) {
	if n, err := parseResident("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n"); err != nil || n != 2<<20 {
		t.Errorf("got %d, %v, want 2 MiB", n, err)
	}
	for _, text := range []string{"", "Name:\tx\n", "VmRSS:\t12 MB\n", "VmRSS:\tx kB\n"} {
		if n, err := parseResident(text); err == nil {
			t.Errorf("%q gives %d, wanted an error", text, n)
		}
	}
}

func TestBucketsAreFineAndInOrder(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<20; v += 1 + v/1000 {
		i := bucket(v)
		if up := upper(i); i < last || up < v || float64(up) > float64(v)*(1+1.0/fine) {
			t.Fatalf("%d is in bucket %d, which goes up to %d, after bucket %d", v, i, up, last)
		}
		last = i
	}
	if i := bucket(math.MaxUint64); i >= len(Latency{}.counts) {
		t.Errorf("the longest duration is in bucket %d of %d", i, len(Latency{}.counts))
	}
}

func TestQuantiles(t *testing.T) {
	var l Latency
	for i := range 1000 {
		l.Add(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0: time.Microsecond, 0.5: 501 * time.Microsecond, 0.99: 991 * time.Microsecond, 1: time.Millisecond} {
		if got := l.Quantile(q); got < want || float64(got) > 1.02*float64(want) {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := l.Quantile(1); got != time.Millisecond {
		t.Errorf("the highest is %v, want exactly 1ms", got)
	}
	if got := new(Latency).Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestSummariseLeavesOutWhatDoesNotCount(t *testing.T) {
	nan := math.NaN()
	if got, want := Summarise([]float64{3, nan, 1, math.Inf(1), 2}), (Summary{N: 3, Median: 2, Low: 1, High: 3}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Summarise([]float64{1, 2, 4, 3}).Median; got != 2.5 {
		t.Errorf("the median of 1 to 4 is %v", got)
	}
	if got := Summarise([]float64{nan}); got.N != 0 || !math.IsNaN(got.Median) {
		t.Errorf("nothing gives %v", got)
	}
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	nan := math.NaN()
	got := Ratios([]float64{10, nan, 30, 0, 5}, []float64{20, 5, nan, 7, 0})
	if got[0] != 0.5 {
		t.Errorf("the first is %v, want 0.5", got[0])
	}
	for i, r := range got[1:] {
		if !math.IsNaN(r) {
			t.Errorf("round %d, which one side lacks, gives %v", i+2, r)
		}
	}
}

func TestResultCounts(t *testing.T) {
	good := Result{Requests: 1000, Elapsed: time.Second, CPU: CPU{User: 20 * time.Millisecond, System: 80 * time.Millisecond}}
	if err := good.Err(); err != nil {
		t.Error(err)
	}
	if good.PerCPUSecond() != 10_000 || good.Cost() != 100*time.Microsecond || good.PerSecond() != 1000 {
		t.Errorf("%v a CPU-second, %v each, %v a second", good.PerCPUSecond(), good.Cost(), good.PerSecond())
	}
	for name, r := range map[string]Result{"failed": {Requests: 1, Failed: 1, Fault: "x"}, "stalled": {Requests: 1, Stalled: 1}, "none": {}} {
		if r.Err() == nil {
			t.Errorf("%s: it counts", name)
		}
	}
	if short := (Result{Requests: 10, CPU: CPU{User: 20 * time.Millisecond}}); short.PerCPUSecond() != 0 {
		t.Errorf("2 ticks are enough to say %v", short.PerCPUSecond())
	}
}
