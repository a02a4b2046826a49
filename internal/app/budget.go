// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

const (
	budgetPath = "/budget"
	// budgetWindow is that of Microsoft.Network's quota, which is budgetQuota writes.
	budgetWindow = 5 * time.Minute
	budgetQuota  = 1000
	// maxBudgetBytes is more than 64 subscriptions need.
	maxBudgetBytes = 1 << 20
)

// BudgetReport is the output of weir budget -o json.
type BudgetReport struct {
	At            time.Time            `json:"at"`
	Subscriptions []SubscriptionBudget `json:"subscriptions"`
}

// SubscriptionBudget is the write quota of one subscription, in five minutes.
type SubscriptionBudget struct {
	Subscription string `json:"subscription"`
	// Spent are Weir's writes, Share what it may write, and Left what remains of it.
	Spent float64 `json:"spent"`
	Share float64 `json:"share"`
	Left  float64 `json:"left"`
	// DeferredNamespaces have used up their part of the share.
	DeferredNamespaces int `json:"deferredNamespaces"`

	ratelimit.Fleet

	// Requests are Weir's in five minutes by purpose, the most first.
	Requests []PurposeCount `json:"requests"`
}

// PurposeCount counts requests for one purpose; only those in Microsoft.Network.
type PurposeCount struct {
	Purpose string `json:"purpose"`
	Writes  int    `json:"writes"`
	Reads   int    `json:"reads"`
}

func serveBudget(log *requestlog.Log, writes *ratelimit.Budgets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requestlog.IsLocal(r) {
			http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		now := time.Now()
		_ = json.NewEncoder(w).Encode(newBudgetReport(log.Select(requestlog.Filter{Since: now.Add(-budgetWindow)}), writes.ListUsage(now), now)) // the client may have closed it
	})
}

func newBudgetReport(calls []requestlog.Call, usage []ratelimit.Usage, now time.Time) BudgetReport {
	counts := map[string]map[string]*PurposeCount{}
	for i := range calls {
		subscription, purpose, ok := purposeOf(&calls[i])
		if !ok {
			continue
		}
		if counts[subscription] == nil {
			counts[subscription] = map[string]*PurposeCount{}
		}
		n := counts[subscription][purpose]
		if n == nil {
			n = &PurposeCount{Purpose: purpose}
			counts[subscription][purpose] = n
		}
		switch calls[i].Op {
		case "put", "patch", "post", "delete":
			n.Writes++
		default:
			n.Reads++
		}
	}
	report := BudgetReport{At: now, Subscriptions: []SubscriptionBudget{}}
	for _, u := range usage {
		s := SubscriptionBudget{Subscription: u.Subscription, Spent: u.Used, Share: u.Share, Left: u.Remaining, DeferredNamespaces: u.Deferred, Fleet: u.Fleet, Requests: []PurposeCount{}}
		for _, n := range counts[u.Subscription] {
			s.Requests = append(s.Requests, *n)
		}
		slices.SortFunc(s.Requests, func(a, b PurposeCount) int {
			return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(b.Reads, a.Reads), cmp.Compare(a.Purpose, b.Purpose))
		})
		report.Subscriptions = append(report.Subscriptions, s)
	}
	return report
}

// purposes are the resource types of Microsoft.Network, in lower case.
var purposes = map[string]string{
	"backendaddresspools": "backend pools", "loadbalancingrules": "health", "loadbalancers": "load balancers", "publicipaddresses": "public IPs",
	"privatelinkservices": "Private Link Services", "networksecuritygroups": "security groups", "networkinterfaces": "network interfaces",
}

// purposeOf returns what a request in Microsoft.Network is for; its last known resource type decides.
func purposeOf(c *requestlog.Call) (subscription, purpose string, ok bool) {
	parts := strings.Split(strings.ToLower(c.Resource), "/")
	if len(parts) < 4 || parts[1] != "subscriptions" || !slices.Contains(parts, "microsoft.network") {
		return "", "", false
	}
	if c.Op == "poll" || c.Op == "result" {
		return parts[2], "ends of writes", true
	}
	for _, part := range slices.Backward(parts) {
		if purpose, known := purposes[part]; known {
			return parts[2], purpose, true
		}
	}
	return parts[2], "other", true
}

// PrintBudget prints the write quota of a running Weir.
func PrintBudget(ctx context.Context, w Connection, asJSON bool, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := w.fetch(ctx, budgetPath, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	var report BudgetReport
	if err := json.NewDecoder(io.LimitReader(resp, maxBudgetBytes)).Decode(&report); err != nil {
		return fmt.Errorf("the leader's response: %w", err)
	}
	if asJSON {
		lines := json.NewEncoder(out)
		lines.SetIndent("", "  ")
		return lines.Encode(report)
	}
	if len(report.Subscriptions) == 0 {
		_, err := fmt.Fprintln(out, "This Weir has sent nothing to Azure. Only the leader does: with --operator-url, check that it is the leader.")
		return err
	}
	for i := range report.Subscriptions {
		if err := report.Subscriptions[i].print(out, report.At); err != nil {
			return err
		}
	}
	return nil
}

func (s *SubscriptionBudget) print(out io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Subscription %s, writes in five minutes\n", s.Subscription)
	fmt.Fprintf(table, "Quota:\t%d of Microsoft.Network; Azure does not report what is left\n", budgetQuota)
	fmt.Fprintf(table, "Share:\t%.0f, %s\n", s.Share, s.describeShare(now))
	fmt.Fprintf(table, "Spent:\t%.0f; %s\n", s.Spent, s.describeLeft())
	if s.DeferredNamespaces > 0 {
		fmt.Fprintf(table, "Deferred:\t%s used up their part\n", humanize.FormatCount(s.DeferredNamespaces, "namespace"))
	}
	if s.Others != nil {
		fmt.Fprintf(table, "Others:\tabout %.0f when the quota was used up, %s ago\n", *s.Others, now.Sub(*s.OthersAt).Round(time.Second))
	} else {
		fmt.Fprintf(table, "Others:\tunknown: the quota was not used up since Weir started\n")
	}
	for _, b := range s.Buckets {
		fmt.Fprintf(table, "Bucket per %s:\t%.0f of %.0f left %s ago; Weir had taken %.0f, others %.0f\n", b.Name, b.Left, b.Size, now.Sub(b.At).Round(time.Second), b.Own, b.Others)
	}
	if len(s.Requests) > 0 {
		fmt.Fprintln(table, "\nREQUESTS FOR\tWRITES\tREADS")
		for _, n := range s.Requests {
			fmt.Fprintf(table, "%s\t%d\t%d\n", n.Purpose, n.Writes, n.Reads)
		}
	}
	return table.Flush()
}

// describeLeft describes what limits the next writes: the share, or the part of a bucket that may be sent in a burst.
func (s *SubscriptionBudget) describeLeft() string {
	if rest := s.Share - s.Spent; s.Left < rest-0.5 {
		return fmt.Sprintf("of the other %.0f, %.0f can be sent at once: Resource Manager refills its buckets over time", rest, s.Left)
	}
	return fmt.Sprintf("%.0f are left of the share", s.Left)
}

func (s *SubscriptionBudget) describeShare(now time.Time) string {
	text := fmt.Sprintf("the %.0f %% of loadBalancerBackendPoolUpdateWriteSharePercent", 100*s.Configured/budgetQuota)
	if s.Reason != "" && s.LoweredAt != nil {
		text = fmt.Sprintf("lowered from %.0f: %s, %s ago", s.Configured, s.Reason, now.Sub(*s.LoweredAt).Round(time.Second))
	}
	if s.ClosedUntil != nil {
		text += "; used up until " + s.ClosedUntil.UTC().Format(time.RFC3339)
	}
	return text
}
