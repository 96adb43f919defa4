// Package figures is what the programs of a benchmark of proxies tell each other and what is made of it: what one run of the load generator saw,
// the processor time and memory of a process, quantiles of latencies, medians of ratios.
//
// It starts nothing and prints no table; it is read by the generator and by the harness, and only by them.
package figures
