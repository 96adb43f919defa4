package ops

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// count is a flag's whole number from 0.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "int" }

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return errors.New("allowed: a whole number, 0 or more")
	}
	*c = count(n)
	return nil
}

// ago is a flag's length of time, from 0.
type ago time.Duration

func (a *ago) String() string { return time.Duration(*a).String() }
func (a *ago) Type() string   { return "duration" }

func (a *ago) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("allowed: a length of time such as 90s, 15m or 24h")
	}
	*a = ago(d)
	return nil
}

// limited is a flag that bounds the rows shown; 0 shows all.
func limited(cmd *cobra.Command, value int) *int {
	cmd.Flags().Var((*count)(&value), "limit", "most rows to show; 0: all")
	return &value
}
