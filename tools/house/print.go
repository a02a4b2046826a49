// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

type report struct {
	Sizes  []packageSize `json:"packages"`
	Cycles []fileCycle   `json:"cycles"`
	Walks  []walkResult  `json:"walks"`
}

func (r report) print(out io.Writer, verbose bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	lines, files := 0, 0
	fmt.Fprintln(w, "package\tlines\tfiles\timports\ttypes\tin a cycle of files")
	for _, s := range r.Sizes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", s.Package, s.Lines, s.Files, s.Imports, len(s.Types), r.cycleSize(s.Package))
		lines, files = lines+s.Lines, files+s.Files
	}
	fmt.Fprintf(w, "all %d\t%d\t%d\n", len(r.Sizes), lines, files)
	fmt.Fprintf(w, "\ntypes above %d methods or %d fields\tmethods\tfields\tfiles\n", maxMethods, maxFields)
	for _, s := range r.Sizes {
		for _, t := range s.Types {
			if t.isLarge() {
				fmt.Fprintf(w, "%s.%s\t%d\t%d\t%d\n", s.Package, t.Name, t.Methods, t.Fields, t.Files)
			}
		}
	}
	fmt.Fprintln(w, "\nwalk\tstays\tfiles\treturns\tpackages\tshortest\tread\tfiles read")
	for _, x := range r.Walks {
		if x.Error != "" {
			fmt.Fprintf(w, "%s\tnot measured: %s\n", x.Name, x.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", x.Name, x.FunctionCount, x.Files, x.ReturnCount, x.Packages, x.Shortest, x.Read, x.ReadFiles)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, x := range r.Walks {
		if verbose && x.Error == "" {
			fmt.Fprintf(out, "\n%s\n  %s\n", x.Name, strings.Join(x.Functions, "\n  "))
		}
	}
	return nil
}

func (r report) cycleSize(path string) int {
	for _, c := range r.Cycles {
		if c.Package == path {
			return len(c.Files)
		}
	}
	return 0
}
