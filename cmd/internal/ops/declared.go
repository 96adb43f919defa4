package ops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// topologyDeclared is a group below topology.
func topologyDeclared(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "declared", Short: "Show, roll back or delete what operators declared", Args: args.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, make := range []func(*common) *cobra.Command{declaredLs, declaredShow, declaredHistory, declaredRollback, declaredDelete} {
		sub := make(c)
		sub.LocalNonPersistentFlags().VisitAll(noEnv)
		cmd.AddCommand(sub)
	}
	return cmd
}

const findFile = "upstrand topology declared ls lists them"

func declaredLs(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List the declared files", Args: args.None}
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		d, err := cl.Declared(ctx)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(d)
		}
		return out.table("NAME REVISION TIME BYTES AUTHOR COMMENT", fileRows(d.Files, func(f wire.DeclaredFile) string { return f.Name }))
	})
	return cmd
}

func fileRows(files []wire.DeclaredFile, first ...func(wire.DeclaredFile) string) [][]string {
	var rows [][]string
	for _, f := range files {
		var row []string
		for _, cell := range first {
			row = append(row, cell(f))
		}
		rows = append(rows, append(row, number(f.Revision), f.At.String(), number(f.Bytes), f.Author, f.Comment))
	}
	return rows
}

func declaredShow(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Print a declared file", Args: args.One("NAME", findFile),
		Example: "  upstrand topology declared show main > main.conf\n  upstrand topology declared show main --revision 3",
	}
	revision := cmd.Flags().Int64("revision", 0, "as this change of its history made it; 0: as it is now")
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, names []string) error {
		f, err := cl.DeclaredFile(ctx, names[0], *revision)
		switch {
		case err != nil:
			return err
		case out.json:
			return out.value(f)
		case f.Text == nil:
			return fmt.Errorf("%s was deleted by revision %d", f.Name, f.Revision)
		}
		_, err = io.WriteString(out.out, *f.Text)
		return err
	})
	return cmd
}

func declaredHistory(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "history NAME", Short: "List the changes of a declared file, newest last", Args: args.One("NAME", findFile)}
	limit := limited(cmd, 50)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, names []string) error {
		changes, err := collect(cl.AllDeclaredHistory(ctx, names[0], page(*limit)), *limit)
		if err != nil {
			return err
		}
		slices.Reverse(changes)
		if out.json {
			return out.value(wire.DeclaredHistory{Changes: changes})
		}
		return out.table("CHANGE REVISION TIME BYTES AUTHOR COMMENT", fileRows(changes, func(f wire.DeclaredFile) string {
			if f.Deleted {
				return "deleted"
			}
			return "declared"
		}))
	})
	return cmd
}

func declaredRollback(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback NAME REVISION", Short: "Declare again what a file said", Args: args.Some("NAME REVISION", "upstrand topology declared history NAME lists them", 2),
		Long: "Declare again what a file said as of a revision, as a new one, checked and shown like any change.",
	}
	flags := changing(cmd)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, given []string) error {
		if len(given) < 2 {
			return fmt.Errorf("REVISION is missing (upstrand topology declared history %s lists them)", given[0])
		}
		revision, err := strconv.ParseInt(given[1], 10, 64)
		if err != nil || revision < 1 {
			return fmt.Errorf("%q is no revision (upstrand topology declared history %s lists them)", given[1], given[0])
		}
		f, err := cl.DeclaredFile(ctx, given[0], revision)
		if err != nil {
			return err
		}
		if f.Text == nil {
			return fmt.Errorf("%s was deleted by revision %d: upstrand topology declared delete %s", f.Name, f.Revision, f.Name)
		}
		ch := flags.begin(cmd, cl, out)
		if ch.comment == "" {
			ch.comment = fmt.Sprintf("back to revision %d", revision)
		}
		return ch.make(ctx, "", wire.DeclareRequest{Name: f.Name, Text: *f.Text}, cl.Declare)
	})
	return cmd
}

func declaredDelete(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Take a declared file out", Args: args.One("NAME", findFile),
		Long: "Take a declared file out: what it declared goes, and derived names that gave way return. Its history is kept.",
	}
	flags := changing(cmd)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, names []string) error {
		return flags.begin(cmd, cl, out).make(ctx, "", wire.DeclareRequest{Name: names[0]}, cl.DeleteDeclared)
	})
	return cmd
}
