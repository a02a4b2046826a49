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

// printRemoteHelp prints what the user can try.
func (r *remote) printRemoteHelp() {
	r.print.printPlain("", "All keeps running until Ctrl-C. In another terminal:", "")
	asks := "  weir provision %s -n " + namespace + " " + provisionName
	// These lines are meant to be copied, so they are not wrapped.
	for _, l := range []string{
		"  export KUBECONFIG=" + r.lab.kubeconfig + " PATH=" + r.opts.programFolder + ":$PATH",
		fmt.Sprintf(asks, "watch"),
		fmt.Sprintf(asks, "logs"),
		fmt.Sprintf(asks, "cancel"),
		fmt.Sprintf(asks, "retry-now"),
		fmt.Sprintf(asks, "reset") + "   # all anew",
		"  kubectl --kubeconfig " + r.target.kubeconfig + " get deployments -A",
	} {
		r.print.writeText(plainText, l)
	}
	r.print.printPlain("", "The network: what it has carried so far, away, back, and worse:", "")
	for _, l := range []string{
		"  curl " + r.admin,
		"  curl -X PATCH -d '{\"away\":true}' " + r.admin,
		"  curl -X PATCH -d '{\"away\":false}' " + r.admin,
		"  curl -X PATCH -d '{\"bytesPerSecond\":1000,\"resetPercent\":60}' " + r.admin,
	} {
		r.print.writeText(plainText, l)
	}
	r.print.printPlain("", "logs  "+r.dir, "")
}

// printProgress creates the Provisions and prints their progress until ctx is done.
func (r *remote) printProgress(ctx context.Context) error {
	if err := r.cluster.createFile(ctx, remoteManifests, "remote/provisions.yaml"); err != nil {
		return err
	}
	comes := make(<-chan time.Time)
	if r.Away > 0 {
		r.print.printLine(yellowText, "network", fmt.Sprintf("away, for %s", r.Away))
		comes = time.After(r.Away)
	}
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	seen := map[string]*reportedState{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-comes:
			r.enableNetwork()
		case n := <-r.networks:
			r.print.printLine(yellowText, "network", n.String())
		case <-look.C:
			if err := r.printUpdates(ctx, seen); err != nil {
				return err
			}
		}
	}
}

// enableNetwork makes the network available unless it already is.
func (r *remote) enableNetwork() {
	n := r.link.Network()
	if !n.Down {
		return
	}
	n.Down = false
	r.link.SetNetwork(n)
	r.print.printLine(yellowText, "network", "back: "+n.String())
}

// printUpdates prints the news of each Provision.
func (r *remote) printUpdates(ctx context.Context, seen map[string]*reportedState) error {
	var list v1alpha1.ProvisionList
	if err := r.cluster.api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("reading Provisions: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if seen[p.Name] == nil {
			seen[p.Name] = &reportedState{}
		}
		text, c := seen[p.Name].nextUpdate(p, time.Now())
		if text == "" {
			continue
		}
		r.print.printLine(c, "weir", p.Name+": "+text)
		if c == greenText {
			r.print.printLine(dimText, "network", formatFigures(r.link.Counters()))
		}
	}
	return nil
}

func formatFigures(f badlink.Counters) string {
	return fmt.Sprintf("%d connections so far, %d refused and %d reset; %.0f kB", f.Connections, f.Rejected, f.Reset, float64(f.Bytes)/1000)
}

// reportedState is what was printed about a Provision.
type reportedState struct {
	state         string
	lastEnded     int64  // last attempt whose end was printed
	failureReason string // reason of its failure
	lastRunning   int64  // last attempt printed as running
}

// progressDelay is how long an attempt runs before that is printed.
const progressDelay = 2 * time.Second

// nextUpdate returns what is new since the last call.
func (r *reportedState) nextUpdate(p *v1alpha1.Provision, now time.Time) (text string, c textStyle) {
	s, last := p.Status, p.Status.LastAttempt
	before := r.state
	r.state = s.State
	ends := last != nil && last.Number != r.lastEnded
	switch {
	case ends:
		r.lastEnded = last.Number
		text = fmt.Sprintf("attempt %d has failed", last.Number)
		if last.Step != "" {
			text += ", step " + last.Step
		}
		text += ": " + r.shortReason(last.Message)
	case s.State == v1alpha1.ProvisionRunning && s.StartedAt != nil && now.Sub(s.StartedAt.Time) > progressDelay && s.AttemptNumber != r.lastRunning:
		r.lastRunning = s.AttemptNumber
		return fmt.Sprintf("attempt %d is under way", s.AttemptNumber), dimText
	case s.State == before:
		return "", plainText
	}
	switch s.State {
	case v1alpha1.ProvisionSucceeded:
		return fmt.Sprintf("attempt %d has succeeded, all steps are done", r.lastEnded), greenText
	case v1alpha1.ProvisionFailed:
		return joinSentences(text, "no other follows"), redText
	case v1alpha1.ProvisionCancelled:
		return joinSentences(text, "the attempts to come are cancelled"), redText
	case v1alpha1.ProvisionWaiting:
		if s.NextAttemptAt != nil && s.WaitingSince != nil {
			text = joinSentences(text, fmt.Sprintf("the next follows after %s", s.NextAttemptAt.Sub(s.WaitingSince.Time).Truncate(time.Second)))
		}
		return text, yellowText
	}
	return text, plainText
}

func joinSentences(text, more string) string { return strings.TrimPrefix(text+"; "+more, "; ") }

// shortReason shortens a message to its end; weir provision logs has all of it.
func (r *reportedState) shortReason(message string) string {
	message, _, _ = strings.Cut(message, "; not begun for it")
	message, _, _ = strings.Cut(message, " - error from a previous attempt")
	reason := message[strings.LastIndex(message, ": ")+1:]
	if reason = strings.TrimSpace(reason); reason == r.failureReason {
		return "as before"
	}
	r.failureReason = reason
	return reason
}
