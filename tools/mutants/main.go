// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// defaultPackages lists the default packages: those that decide what is written to Azure.
func defaultPackages() []string {
	return []string{"./internal/pool/updater", "./internal/pool/schedule", "./internal/pool/diff", "./internal/controllers/backendpools/backendpool", "./internal/pool/membership", "./internal/loadbalancer", "./internal/controllers/services/servicelb"}
}

type options struct {
	sample, seeds, jobs  int
	seed                 uint64
	state, commandPrefix string
	list, write          bool
	args                 []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, errCheckFailed) {
		os.Exit(1)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
}

func parseFlags(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.IntVar(&o.sample, "sample", 60, "how many changes to make in each package; 0 is all")
	flags.Uint64Var(&o.seed, "seed", 1, "which ones: the same seed draws the same")
	flags.IntVar(&o.seeds, "seeds", 100, "seeds of the simulator that a change is played in which the tests do not see; 0 is none")
	flags.IntVar(&o.jobs, "jobs", 2, "how many seeds are played at once")
	flags.StringVar(&o.state, "state", "bin/mutants.jsonl", "where verdicts are kept, so that the next run goes on")
	flags.StringVar(&o.commandPrefix, "with", "", "what each build and run is started by, such as 'nice -n 19'")
	flags.BoolVar(&o.list, "list", false, "list the changes, and make none")
	flags.BoolVar(&o.write, "write", false, "write score and survivors into "+pagePath)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.args = flags.Args()
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	if slices.Equal(o.args, []string{"play"}) {
		return runSimulation(ctx, out, o.seeds, o.jobs)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	packages := o.args
	if len(packages) == 0 {
		packages = defaultPackages()
	}
	texts, err := readSources(ctx, root, packages)
	if err != nil {
		return err
	}
	mutants, err := shuffleMutants(texts, o.seed)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range mutants {
			fmt.Fprintf(out, "%s:%d %s\n%s", m.File, m.Line, m.Operator, m.formatDiff(texts[m.File]))
		}
		return nil
	}
	return runMutants(ctx, o, root, texts, mutants, out)
}

func runMutants(ctx context.Context, o options, root string, texts map[string][]byte, mutants []mutant, out io.Writer) error {
	dir, err := os.MkdirTemp("", "weir-mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages := packagesOf(mutants)
	fmt.Fprintf(out, "%d changes are possible in %s\n", len(mutants), strings.Join(packages, ", "))
	drawn, err := sampleMutants(ctx, root, texts, mutants, o.sample)
	if err != nil {
		return err
	}
	changes := map[int]mutant{}
	for i, m := range drawn {
		changes[i+1] = m
	}
	fmt.Fprintf(out, "%d of them are woven in, and all tests run without one\n", len(changes))
	j := &runner{root: root, buildDir: dir, commandPrefix: strings.Fields(o.commandPrefix), seeds: o.seeds}
	if err := j.prepareBuild(ctx, texts, changes); err != nil {
		return err
	}
	states := map[string]*state{}
	for _, p := range packages {
		from, err := hashInputs(root, []string{p, "lab"}, o.seeds)
		if err == nil {
			states[p], err = openState(o.state, from)
		}
		if err != nil {
			return err
		}
	}
	r := newReport(describeTree(ctx, root), o, j.simulatorDeps, mutants)
	for i, m := range drawn {
		v, known := states[path.Dir(m.File)].results[m.stateKey()]
		if !known {
			if v, err = j.evaluate(ctx, i+1, m); err == nil {
				err = states[path.Dir(m.File)].save(m, v)
			}
		}
		if ctx.Err() != nil {
			fmt.Fprintf(out, "interrupted; the same command goes on\n")
			break
		}
		if err != nil {
			return fmt.Errorf("%s:%d %s: %w", m.File, m.Line, m.Operator, err)
		}
		r.addResult(m, v, texts[m.File])
		fmt.Fprintf(out, "%d of %d, %d killed: %s:%d %s: %s %s (%s)\n", i+1, len(drawn), r.killedCount(), m.File, m.Line, m.Operator, v.Fate, v.By, v.Took.Round(time.Second/10))
	}
	fmt.Fprintf(out, "\n%s", r.renderText())
	if o.write && ctx.Err() == nil {
		return r.writePage(root)
	}
	return ctx.Err()
}

// sampleMutants returns the first mutants of each package that compile, up to limit; 0 means all.
func sampleMutants(ctx context.Context, root string, texts map[string][]byte, mutants []mutant, limit int) ([]mutant, error) {
	c, err := newChecker(ctx, root, packagesOf(mutants), texts)
	if err != nil {
		return nil, err
	}
	var drawn []mutant
	of := map[string]int{}
	for _, m := range mutants {
		pkg := path.Dir(m.File)
		if limit > 0 && of[pkg] == limit || !c.canCompile(m) {
			continue
		}
		of[pkg]++
		drawn = append(drawn, m)
	}
	return drawn, ctx.Err()
}

// readSources returns the Go files of packages without tests, keyed by path relative to root.
func readSources(ctx context.Context, root string, packages []string) (map[string][]byte, error) {
	args := slices.Concat([]string{"list", "-f", `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`}, packages)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // what the caller asks for
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(packages, " "), err)
	}
	texts := map[string][]byte{}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the tree
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		texts[filepath.ToSlash(rel)] = text
	}
	return texts, nil
}

// shuffleMutants shuffles the mutants of each package by seed and takes one per package in turn, so that a
// sample covers small packages as well as large ones.
func shuffleMutants(texts map[string][]byte, seed uint64) ([]mutant, error) {
	byPackage, n := map[string][]mutant{}, 0
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if bytes.HasPrefix(texts[name], []byte("// Code generated")) {
			continue
		}
		some, err := findMutants(name, texts[name])
		if err != nil {
			return nil, err
		}
		byPackage[path.Dir(name)] = append(byPackage[path.Dir(name)], some...)
		n += len(some)
	}
	for _, some := range byPackage {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // nothing secret is drawn
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	}
	mutants := make([]mutant, 0, n)
	for i := 0; len(mutants) < n; i++ {
		for _, p := range slices.Sorted(maps.Keys(byPackage)) {
			if i < len(byPackage[p]) {
				mutants = append(mutants, byPackage[p][i])
			}
		}
	}
	return mutants, nil
}

func packagesOf(mutants []mutant) []string {
	seen := map[string]bool{}
	for _, m := range mutants {
		seen[path.Dir(m.File)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}
