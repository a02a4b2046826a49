// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event reasons of the controller, repeated here because they are part of its API.
const (
	reasonRetrying = "LoadBalancerBackendPoolUpdateRetrying"
	reasonFailed   = "LoadBalancerBackendPoolUpdateFailed"
	// reasonSyncFailed is Kubernetes' own reason: the load balancer could not be provisioned.
	reasonSyncFailed = "SyncLoadBalancerFailed"
)

// serviceEvents returns the events of a reason on Services, oldest first.
func (c *cluster) serviceEvents(ctx context.Context, reason string) ([]corev1.Event, error) {
	return c.listEvents(ctx, namespace, func(e corev1.Event) bool {
		return e.Reason == reason && e.InvolvedObject.Kind == "Service"
	})
}

// nodeEvents returns a node's events except the eviction notice, oldest first.
func (c *cluster) nodeEvents(ctx context.Context, node *corev1.Node) ([]corev1.Event, error) {
	return c.listEvents(ctx, metav1.NamespaceDefault, func(e corev1.Event) bool {
		return e.Reason != reasonPreempt && e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node.Name
	})
}

func (c *cluster) listEvents(ctx context.Context, namespace string, which func(corev1.Event) bool) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := c.api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !which(e) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(a.LastTimestamp.Compare(b.LastTimestamp.Time), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	return events, nil
}

// countByService counts the events of each Service, including repetitions of one event object.
func countByService(events []corev1.Event) map[string]int {
	n := map[string]int{}
	for i := range events {
		n[events[i].InvolvedObject.Name] += max(int(events[i].Count), 1)
	}
	return n
}

// eventLines formats an event like kubectl get events, with its message below.
func eventLines(e *corev1.Event, now time.Time, columns int) []string {
	age := "0s"
	if d := now.Sub(e.LastTimestamp.Time); d > 0 {
		age = duration.HumanDuration(d)
	}
	head := fmt.Sprintf("%-5s %s  %s  %s/%s", age, e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name)
	lines := []string{head}
	for _, row := range wrapText(e.Message, columns-6) {
		lines = append(lines, "      "+row)
	}
	return lines
}

// table is the API server's answer to kubectl get -o wide.
type table struct {
	header []string
	rows   [][]string
}

// backendPools returns the output of kubectl get backendpools -o wide. The server defines its columns.
func (c *cluster) backendPools(ctx context.Context) (table, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+"/apis/weir.dev/v1alpha1/namespaces/"+namespace+"/backendpools", nil)
	if err != nil {
		return table{}, err
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := c.http.Do(req)
	if err != nil {
		return table{}, fmt.Errorf("asking for the table of BackendPools: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return table{}, fmt.Errorf("asking for the table of BackendPools: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return table{}, fmt.Errorf("asking for the table of BackendPools: %s", resp.Status)
	}
	var answer metav1.Table
	if err := json.Unmarshal(raw, &answer); err != nil {
		return table{}, fmt.Errorf("the table of BackendPools: %w", err)
	}
	return newTable(&answer), nil
}

func newTable(answer *metav1.Table) table {
	var t table
	for _, c := range answer.ColumnDefinitions {
		t.header = append(t.header, strings.ToUpper(c.Name))
	}
	for _, r := range answer.Rows {
		var row []string
		for _, cell := range r.Cells {
			if cell == nil {
				cell = ""
			}
			row = append(row, fmt.Sprint(cell))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// cellValue returns a row's value in a column, or "" if the column does not exist.
func (t table) cellValue(row []string, column string) string {
	if i := slices.Index(t.header, column); i >= 0 && i < len(row) {
		return row[i]
	}
	return ""
}

// allEqual reports whether every row has the value in a column.
func (t table) allEqual(column, value string) bool {
	return len(t.rows) > 0 && !slices.ContainsFunc(t.rows, func(row []string) bool { return t.cellValue(row, column) != value })
}

// sameTime reports whether all rows have times in a column that differ by at most the second of
// rounding.
func (t table) sameTime(column string) bool {
	var first time.Time
	for i, row := range t.rows {
		at, err := time.Parse(time.RFC3339, t.cellValue(row, column))
		if err != nil {
			return false
		}
		if i == 0 {
			first = at
		}
		if at.Sub(first).Abs() > time.Second {
			return false
		}
	}
	return len(t.rows) > 0
}

// formatLines formats the table like kubectl. If it is too wide, it drops the spare columns one by one.
func (t table) formatLines(columns int, spare ...string) []string {
	remaining := map[string]bool{}
	for {
		lines, widest := t.renderRows(remaining)
		if widest <= columns || len(spare) == 0 {
			return lines
		}
		remaining[spare[0]], spare = true, spare[1:]
	}
}

func (t table) renderRows(without map[string]bool) (lines []string, widest int) {
	rows := append([][]string{t.header}, t.rows...)
	lines = make([]string, len(rows))
	for i, name := range t.header {
		if without[name] {
			continue
		}
		column := 0
		for _, row := range rows {
			column = max(column, len(row[i]))
		}
		for j, row := range rows {
			lines[j] += fmt.Sprintf("%-*s   ", column, row[i])
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		widest = max(widest, len(lines[i]))
	}
	return lines, widest
}
