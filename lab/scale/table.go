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
	for _, got := range r.results {
		lines = append(lines, tableRow(got))
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(table, strings.Join(line, "\t")) // reported by Flush
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, got := range r.results {
		if line := unitCost(got, r.opts); line != "" {
			if _, err := fmt.Fprintln(r.opts.Out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func tableRow(got phaseResult) []string {
	line := []string{got.Phase, fmt.Sprintf("%.1f", got.Seconds), fmt.Sprintf("%.2f", got.CPU), fmt.Sprintf("%.1f", got.Cluster), fmt.Sprintf("%.1f", got.Azure), fmt.Sprintf("%.1f", got.Bytes/mebibyte)}
	for _, n := range []float64{got.API, got.Reads, got.Conflicts, got.ARMReads, got.ARMWrites, got.Resident / mebibyte, got.PeakResident / mebibyte} {
		line = append(line, fmt.Sprintf("%.0f", n))
	}
	return line
}

func unitCost(got phaseResult, o Options) string {
	n := float64(got.Events)
	switch {
	case got.Phase == "idle":
		return fmt.Sprintf("idle: %.0f ARM reads an hour, %.2f %% of a core", got.ARMReads/got.Seconds*3600, 100*got.CPU/got.Seconds)
	case got.Events > 0:
		return fmt.Sprintf("%s: %.2f ms of CPU, %.0f allocations, %.1f KiB each", got.Phase, 1000*got.CPU/n, got.Allocs/n, got.Bytes/n/1024)
	case got.Phase == "first start":
		return fmt.Sprintf("first start: %.1f API requests a pool", got.API/float64(o.Services))
	}
	return ""
}
