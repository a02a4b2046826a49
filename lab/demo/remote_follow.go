// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/badlink"
)

// printLookAround prints what the user can try.
func (r *remote) printLookAround() {
	r.print.plainly("", "All keeps running until Ctrl-C. In another terminal:", "")
	asks := "  weir provision %s -n " + namespace + " " + store
	// These lines are meant to be copied, so they are not wrapped.
	for _, l := range []string{
		"  export KUBECONFIG=" + r.lab.kubeconfig + " PATH=" + r.opts.bin + ":$PATH",
		fmt.Sprintf(asks, "watch"),
		fmt.Sprintf(asks, "logs"),
		fmt.Sprintf(asks, "cancel"),
		fmt.Sprintf(asks, "retry-now"),
		fmt.Sprintf(asks, "reset") + "   # all anew",
		"  kubectl --kubeconfig " + r.far.kubeconfig + " get deployments -A",
	} {
		r.print.print(plain, l)
	}
	r.print.plainly("", "The network: what it has carried so far, away, back, and worse:", "")
	for _, l := range []string{
		"  curl " + r.admin,
		"  curl -X PATCH -d '{\"away\":true}' " + r.admin,
		"  curl -X PATCH -d '{\"away\":false}' " + r.admin,
		"  curl -X PATCH -d '{\"bytesPerSecond\":1000,\"resetPercent\":60}' " + r.admin,
	} {
		r.print.print(plain, l)
	}
	r.print.plainly("", "logs  "+r.dir, "")
}

// follow creates the Provisions and prints their progress until ctx is done.
func (r *remote) follow(ctx context.Context) error {
	if err := r.cluster.createFile(ctx, wanted, "remote/provisions.yaml"); err != nil {
		return err
	}
	comes := make(<-chan time.Time)
	if r.Away > 0 {
		r.print.line(yellow, "network", fmt.Sprintf("away, for %s", r.Away))
		comes = time.After(r.Away)
	}
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	seen := map[string]*told{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-comes:
			r.comes()
		case n := <-r.networks:
			r.print.line(yellow, "network", n.String())
		case <-look.C:
			if err := r.look(ctx, seen); err != nil {
				return err
			}
		}
	}
}

// comes makes the network available unless it already is.
func (r *remote) comes() {
	n := r.link.Network()
	if !n.Down {
		return
	}
	n.Down = false
	r.link.SetNetwork(n)
	r.print.line(yellow, "network", "back: "+n.String())
}

// look prints the news of each Provision.
func (r *remote) look(ctx context.Context, seen map[string]*told) error {
	var all v1alpha1.ProvisionList
	if err := r.cluster.api.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("reading Provisions: %w", err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if seen[p.Name] == nil {
			seen[p.Name] = &told{}
		}
		text, c := seen[p.Name].news(p, time.Now())
		if text == "" {
			continue
		}
		r.print.line(c, "weir", p.Name+": "+text)
		if c == green {
			r.print.line(dim, "network", carried(r.link.Counters()))
		}
	}
	return nil
}

func carried(f badlink.Counters) string {
	return fmt.Sprintf("%d connections so far, %d refused and %d reset; %.0f kB", f.Connections, f.Rejected, f.Reset, float64(f.Bytes)/1000)
}

// told is what was printed about a Provision.
type told struct {
	state string
	ended int64  // last attempt whose end was printed
	why   string // reason of its failure
	under int64  // last attempt printed as running
}

// goesOn is how long an attempt runs before that is printed.
const goesOn = 2 * time.Second

// news returns what is new since the last call.
func (t *told) news(p *v1alpha1.Provision, now time.Time) (text string, c colour) {
	s, last := p.Status, p.Status.LastAttempt
	before := t.state
	t.state = s.State
	ends := last != nil && last.Number != t.ended
	switch {
	case ends:
		t.ended = last.Number
		text = fmt.Sprintf("attempt %d has failed", last.Number)
		if last.Step != "" {
			text += ", step " + last.Step
		}
		text += ": " + t.reason(last.Message)
	case s.State == v1alpha1.ProvisionRunning && s.StartedAt != nil && now.Sub(s.StartedAt.Time) > goesOn && s.AttemptNumber != t.under:
		t.under = s.AttemptNumber
		return fmt.Sprintf("attempt %d is under way", s.AttemptNumber), dim
	case s.State == before:
		return "", plain
	}
	switch s.State {
	case v1alpha1.ProvisionSucceeded:
		return fmt.Sprintf("attempt %d has succeeded, all steps are done", t.ended), green
	case v1alpha1.ProvisionFailed:
		return sentences(text, "no other follows"), red
	case v1alpha1.ProvisionCancelled:
		return sentences(text, "the attempts to come are cancelled"), red
	case v1alpha1.ProvisionWaiting:
		if s.NextAttemptAt != nil && s.WaitingSince != nil {
			text = sentences(text, fmt.Sprintf("the next follows after %s", s.NextAttemptAt.Sub(s.WaitingSince.Time).Truncate(time.Second)))
		}
		return text, yellow
	}
	return text, plain
}

func sentences(text, more string) string { return strings.TrimPrefix(text+"; "+more, "; ") }

// reason shortens a message to its end; weir provision logs has all of it.
func (t *told) reason(message string) string {
	message, _, _ = strings.Cut(message, "; not begun for it")
	message, _, _ = strings.Cut(message, " - error from a previous attempt")
	why := message[strings.LastIndex(message, ": ")+1:]
	if why = strings.TrimSpace(why); why == t.why {
		return "as before"
	}
	t.why = why
	return why
}
