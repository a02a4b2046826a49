// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

type options struct {
	dir, root, output string
	verbose           bool
	walks             []walk
	loops             []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	tree, err := loadTree(ctx, o.dir, o.root)
	if err != nil {
		return err
	}
	r := report{Sizes: computeSizes(tree), Cycles: findCycles(tree)}
	g := newGraph(tree, o.loops)
	for _, w := range o.walks {
		r.Walks = append(r.Walks, g.measureWalk(w))
	}
	if o.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(out, o.verbose)
}

func parseFlags(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.StringVar(&o.dir, "C", ".", "the tree to measure")
	flags.StringVar(&o.root, "of", "./cmd/weir", "what is shipped: this command, and what it is built from")
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.BoolVar(&o.verbose, "v", false, "name the functions of each walk")
	flags.Func("walk", "name=entry>end,entry>end… instead of the walks of this house; repeatable", func(s string) error {
		w, err := parseWalk(s)
		o.walks = append(o.walks, w)
		return err
	})
	flags.Func("loop", "a function that no walk enters unless it begins there, instead of those of this house; repeatable", func(s string) error {
		o.loops = append(o.loops, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.output != "text" && o.output != "json" {
		return o, fmt.Errorf("-o %q: text or json", o.output)
	}
	if len(o.loops) == 0 {
		o.loops = defaultLoops()
	}
	if len(o.walks) == 0 {
		o.walks = defaultWalks()
	}
	return o, nil
}
