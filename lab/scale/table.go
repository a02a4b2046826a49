// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

const mebibyte = 1 << 20

func (r *run) printResults() error {
	if r.opts.JSON {
		encoder := json.NewEncoder(r.opts.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(jsonObject{
			"services": r.opts.Services, "nodes": r.opts.Nodes, "loadBalancers": r.opts.LoadBalancers, "phases": r.results,
		})
	}
	table := tabwriter.NewWriter(r.opts.Out, 0, 0, 2, ' ', 0)
	lines := [][]string{{"phase", "s", "CPU s", "API server", "emulator", "MiB allocated", "API requests", "reads", "conflicts", "ARM reads", "writes", "RSS MiB", "highest"}}
	for _, is := range r.results {
		lines = append(lines, tableRow(is))
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(table, strings.Join(line, "\t")) // reported by Flush
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, is := range r.results {
		if line := unitCost(is, r.opts); line != "" {
			if _, err := fmt.Fprintln(r.opts.Out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func tableRow(is phaseResult) []string {
	line := []string{is.Phase, fmt.Sprintf("%.1f", is.Seconds), fmt.Sprintf("%.2f", is.CPU), fmt.Sprintf("%.1f", is.Cluster), fmt.Sprintf("%.1f", is.Azure), fmt.Sprintf("%.1f", is.Bytes/mebibyte)}
	for _, n := range []float64{is.API, is.Reads, is.Conflicts, is.ARMReads, is.ARMWrites, is.Resident / mebibyte, is.PeakResident / mebibyte} {
		line = append(line, fmt.Sprintf("%.0f", n))
	}
	return line
}

func unitCost(is phaseResult, o Options) string {
	n := float64(is.Events)
	switch {
	case is.Phase == "idle":
		return fmt.Sprintf("idle: %.0f ARM reads an hour, %.2f %% of a core", is.ARMReads/is.Seconds*3600, 100*is.CPU/is.Seconds)
	case is.Events > 0:
		return fmt.Sprintf("%s: %.2f ms of CPU, %.0f allocations, %.1f KiB each", is.Phase, 1000*is.CPU/n, is.Allocs/n, is.Bytes/n/1024)
	case is.Phase == "first start":
		return fmt.Sprintf("first start: %.1f API requests a pool", is.API/float64(o.Services))
	}
	return ""
}
