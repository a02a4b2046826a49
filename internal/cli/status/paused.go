// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
)

// OverduePause is the cause if a pause has ended but the pool is still paused.
const OverduePause = "PauseOver"

// Paused is a paused BackendPool.
type Paused struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Service   string `json:"service,omitempty"`
	// Since is the start of the pause.
	Since time.Time `json:"since,omitzero"`
	// Until is its end; zero means none.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
	// By is the user named in the spec, With the field manager that set spec.paused.
	By   string `json:"by,omitempty"`
	With string `json:"with,omitempty"`
}

func newPaused(p *v1alpha1.BackendPool) Paused {
	paused := Paused{Namespace: p.Namespace, Name: p.Name}
	if p.Spec.ServiceRef != nil {
		paused.Service = p.Spec.ServiceRef.Name
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPaused); c != nil {
		paused.Since = c.LastTransitionTime.Time
	}
	if d := p.Spec.Pause; d != nil {
		paused.Why, paused.By = d.Why, d.By
		if d.Until != nil {
			paused.Until = d.Until.Time
		}
	}
	for _, m := range p.ManagedFields {
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:paused"`) {
			paused.With = m.Manager
		}
	}
	return paused
}

func checkOverdue(p *v1alpha1.BackendPool, w Problem, now time.Time) []Problem {
	if p.Spec.IsPausedAt(now.Add(-maxPendingAge)) || !p.Spec.Paused || p.Spec.Pause == nil || p.Spec.Pause.Until == nil {
		return nil
	}
	w.Since, w.cause = p.Spec.Pause.Until.Time, OverduePause
	w.Why = "the pause ended at " + humanize.FormatTime(w.Since) + ", and Weir has not resumed"
	return []Problem{w}
}

// sortByEnd puts pauses without an end last.
func sortByEnd(paused []Paused) {
	end := func(p Paused) time.Time {
		if p.Until.IsZero() {
			return time.Unix(1<<40, 0) // later than any real date
		}
		return p.Until
	}
	slices.SortFunc(paused, func(a, b Paused) int {
		return cmp.Or(end(a).Compare(end(b)), a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func (r Report) writePaused(b *strings.Builder) {
	if len(r.Paused) == 0 {
		return
	}
	do := RemedyFor(v1alpha1.ReasonPaused)
	if len(r.Paused) == 1 {
		do = RemedyOf(v1alpha1.ReasonPaused, Problem{Namespace: r.Paused[0].Namespace, Name: r.Paused[0].Name})
	}
	fmt.Fprintf(b, "\nPaused by a user: changes are written when the pause ends.\n  What to do: %s\n", do)
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, p := range r.Paused[:min(len(r.Paused), maxObjects)] {
		fmt.Fprintf(w, "  backendpool %s/%s\t%s\t%s\t%s\t%s\n", p.Namespace, sanitizeText(p.Name), r.formatSince(p.Since), r.formatEnd(p.Until), p.pausedBy(), sanitizeText(p.Why))
	}
	w.Flush()
	if n := len(r.Paused) - maxObjects; n > 0 {
		fmt.Fprintf(b, "  and %d more; -o json has all\n", n)
	}
}

func (r Report) formatEnd(t time.Time) string {
	if t.IsZero() {
		return "without an end"
	}
	return fmt.Sprintf("until %s (in %s)", humanize.FormatTime(t), duration.HumanDuration(max(0, t.Sub(r.At))))
}

func (p Paused) pausedBy() string {
	switch {
	case p.By != "":
		return "by " + sanitizeText(p.By)
	case p.With != "":
		return "with " + sanitizeText(p.With)
	}
	return ""
}
