// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/internal/ratelimit"
)

// Command implements weir provision with the user's permissions.
type Command struct {
	API       client.Client
	Namespace string // empty means all, for List and Note
	Out       io.Writer
	// Err receives notes.
	Err  io.Writer
	JSON bool
}

// WarnIfNoProvisioner prints a note if no provisioner runs. It prints nothing if the caller may not list Leases.
func (c Command) WarnIfNoProvisioner(ctx context.Context, now time.Time) error {
	p, err := status.ReadProvisioner(ctx, c.API, c.Namespace, now)
	if err != nil || p.MissingReason() == "" {
		return err
	}
	_, err = fmt.Fprintf(c.Err, "weir: note: %s\n", sanitizeText(p.MissingReason()))
	return err
}

// ListProvisions lists Provisions.
func (c Command) ListProvisions(ctx context.Context) error {
	var list v1alpha1.ProvisionList
	if err := c.API.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	if c.JSON {
		return c.writeJSON(list.Items)
	}
	if len(list.Items) == 0 {
		where := "any namespace"
		if c.Namespace != "" {
			where = "namespace " + c.Namespace + ": -A lists those of all"
		}
		_, err := fmt.Fprintf(c.Out, "There is no Provision in %s.\n", where)
		return err
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "NAMESPACE\tNAME\tSTATE\tATTEMPTS\tNEXT\tWHY\n")
	for i := range list.Items {
		p := &list.Items[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Namespace, p.Name, formatState(p), formatAttemptCount(p), formatNextAttempt(p), humanize.FormatMessage(failureReason(p), 80))
	}
	w.Flush()
	return nil
}

// ShowProvision prints one Provision in detail.
func (c Command) ShowProvision(ctx context.Context, name string) error {
	p, err := c.getProvision(ctx, name)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.writeJSON(p)
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "Provision\t%s/%s\n", p.Namespace, p.Name)
	if p.Status.Target != "" { // known after the first connection
		fmt.Fprintf(w, "Target\t%s\n", sanitizeText(p.Status.Target))
	}
	fmt.Fprintf(w, "State\t%s\n", formatState(p))
	fmt.Fprintf(w, "Attempts\t%s\n", formatAttemptCount(p))
	if text := formatNextAttempt(p); text != "" {
		if objects.HasRetryAfter(p) {
			text += " (Retry-After of the target; weir provision reset forgets it)"
		}
		fmt.Fprintf(w, "Next\t%s\n", text)
	}
	if text := failureReason(p); text != "" {
		fmt.Fprintf(w, "Why\t%s\n", text)
	}
	w.Flush()
	fmt.Fprintf(w, "\nSTEP\tDONE\tOBJECTS\n")
	for _, step := range p.Spec.Steps {
		done, objects := "", ""
		for _, s := range p.Status.Steps {
			if s.Name == step.Name && s.DoneAt != nil {
				done = s.DoneAt.UTC().Format(time.RFC3339)
			}
			if s.Name == step.Name && len(s.Inventory) > 0 {
				objects = strconv.Itoa(len(s.Inventory))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", step.Name, done, objects)
	}
	w.Flush()
	fmt.Fprintf(w, "\nPOLICY\tVALUE\tFROM\n")
	for _, v := range p.Status.Policy {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Value, v.From)
	}
	w.Flush()
	return nil
}

// AttemptLog is the log of an attempt.
type AttemptLog struct {
	Attempt int64  `json:"attempt"`
	Log     string `json:"log"`
}

// PrintLogs prints the logs of the last five attempts, or of one.
func (c Command) PrintLogs(ctx context.Context, name string, attempt int64) error {
	p, err := c.getProvision(ctx, name)
	if err != nil {
		return err
	}
	logs, err := c.readLogs(ctx, p)
	if err != nil {
		return err
	}
	if attempt > 0 {
		kept := logs
		logs = slices.DeleteFunc(slices.Clone(logs), func(l AttemptLog) bool { return l.Attempt != attempt })
		if len(logs) == 0 {
			return fmt.Errorf("there is no log of attempt %d: kept are %s", attempt, formatAttempts(kept))
		}
	}
	if c.JSON {
		return c.writeJSON(logs)
	}
	if len(logs) == 0 {
		_, err := fmt.Fprintf(c.Err, "weir: note: no log of Provision %s/%s is kept: no attempt has begun, or weir-provisioner may not write ConfigMaps there\n", p.Namespace, p.Name)
		return err
	}
	for _, l := range logs {
		fmt.Fprintf(c.Out, "--- attempt %d\n", l.Attempt)
		for line := range strings.Lines(l.Log) {
			fmt.Fprintln(c.Out, sanitizeText(line))
		}
	}
	return nil
}

func formatAttempts(logs []AttemptLog) string {
	if len(logs) == 0 {
		return "none"
	}
	var attempts []string
	for _, l := range logs {
		attempts = append(attempts, strconv.FormatInt(l.Attempt, 10))
	}
	return "those of " + strings.Join(attempts, ", ")
}

func (c Command) readLogs(ctx context.Context, p *v1alpha1.Provision) ([]AttemptLog, error) {
	l := []AttemptLog{}
	for n := max(1, p.Status.AttemptNumber-policy.MaxLogs+1); n <= p.Status.AttemptNumber; n++ {
		text, found, err := objects.ReadLog(ctx, c.API, p, n)
		if err != nil {
			return nil, err
		}
		if found {
			l = append(l, AttemptLog{n, text})
		}
	}
	return l, nil
}

// RequestAction sets a request annotation of v1alpha1 to the current time.
func (c Command) RequestAction(ctx context.Context, name, action string, now time.Time) error {
	p, err := c.getProvision(ctx, name)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "annotations": map[string]string{action: now.UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return err
	}
	if err := c.API.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	if c.JSON {
		return c.writeJSON(p)
	}
	note := ""
	if state := p.Status.State; action == v1alpha1.CancelAnnotation && (state == v1alpha1.ProvisionSucceeded || state == v1alpha1.ProvisionFailed) {
		note = fmt.Sprintf("; it is %s, so nothing was to come, and another spec begins anew", state)
	}
	_, err = fmt.Fprintf(c.Out, "provision.weir.dev/%s asked%s\n", p.Name, note)
	return err
}

const watchInterval = 2 * time.Second

// ErrNotProvisioned is returned if the watched Provision failed or was canceled.
var ErrNotProvisioned = errors.New("not provisioned")

// WatchProvision prints changes until the Provision finishes.
func (c Command) WatchProvision(ctx context.Context, name string) error {
	last := ""
	for {
		p, err := c.getProvision(ctx, name)
		if err != nil {
			return err
		}
		line := strings.TrimRight(strings.Join([]string{formatState(p), formatAttemptCount(p), formatNextAttempt(p), failureReason(p)}, "  "), " ")
		if line != last {
			last = line
			if c.JSON {
				err = json.NewEncoder(c.Out).Encode(p)
			} else {
				_, err = fmt.Fprintf(c.Out, "%s  %s\n", time.Now().UTC().Format(time.RFC3339), line)
			}
			if err != nil {
				return err
			}
		}
		switch state := p.Status.State; {
		case objects.HasOpenRequest(p): // the last request is not processed yet
		case state == v1alpha1.ProvisionSucceeded:
			return nil
		case state == v1alpha1.ProvisionFailed, state == v1alpha1.ProvisionCancelled:
			return fmt.Errorf("%w: %s", ErrNotProvisioned, p.Status.State)
		}
		if err := ratelimit.Sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

func (c Command) getProvision(ctx context.Context, name string) (*v1alpha1.Provision, error) {
	p := &v1alpha1.Provision{}
	return p, c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, p)
}

func (c Command) writeJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func formatState(p *v1alpha1.Provision) string {
	switch {
	case p.Status.State == "":
		return "Pending"
	case p.Status.Cancelled && p.Status.State == v1alpha1.ProvisionRunning:
		return "Running, the last"
	}
	return sanitizeText(p.Status.State)
}

func formatAttemptCount(p *v1alpha1.Provision) string {
	for _, v := range p.Status.Policy {
		if n, err := strconv.Atoi(v.Value); err == nil && v.Name == "retries" {
			return fmt.Sprintf("%d of %d", p.Status.Attempts, max(n+1, int(p.Status.Attempts)))
		}
	}
	return strconv.Itoa(int(p.Status.Attempts))
}

func formatNextAttempt(p *v1alpha1.Provision) string {
	if p.Status.NextAttemptAt == nil {
		return ""
	}
	return p.Status.NextAttemptAt.UTC().Format(time.RFC3339)
}

func failureReason(p *v1alpha1.Provision) string {
	last := p.Status.LastAttempt
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ProvisionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return sanitizeText(c.Message) // no attempt begins before this is fixed
	}
	if last == nil || last.Message == "" || p.Status.State == v1alpha1.ProvisionSucceeded {
		return ""
	}
	if last.Step != "" {
		return sanitizeText("step " + last.Step + ": " + last.Message)
	}
	return sanitizeText(last.Message)
}

// sanitizeText removes control characters, which could steer the terminal.
func sanitizeText(text string) string { return humanize.FormatMessage(text, 4096) }
