// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
)

// MaxReasonLength limits a reason, in characters.
const MaxReasonLength = 256

// PauseCommand pauses BackendPools and resumes them.
type PauseCommand struct {
	API       client.Client
	Namespace string // empty means all, if Names is empty
	Names     []string
	Out       io.Writer
	JSON      bool
	// DryRun sends server-side dry-run requests only.
	DryRun bool
}

// Pool is the result for a BackendPool.
type Pool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// Paused is the new value of spec.paused, Was the previous one.
	Paused    bool            `json:"paused"`
	WasPaused bool            `json:"wasPaused"`
	Pause     *v1alpha1.Pause `json:"pause,omitempty"`
	DryRun    bool            `json:"dryRun,omitempty"`
}

// PausePools pauses the pools for length; 0 means until they are resumed.
func (c PauseCommand) PausePools(ctx context.Context, length time.Duration, reason string, now time.Time) error {
	pools, err := c.selectPools(ctx, verbPause)
	if err != nil {
		return err
	}
	pause := &v1alpha1.Pause{Why: reason, By: c.userName(ctx)}
	if length > 0 {
		pause.Until = new(metav1.NewTime(humanize.RoundUpSecond(now.Add(length)).UTC()))
	}
	if *pause == (v1alpha1.Pause{}) {
		pause = nil
	}
	return c.patchPools(ctx, pools, v1alpha1.BackendPoolSpec{Paused: true, Pause: pause})
}

// ResumePools resumes the pools. Pools that are not paused are skipped, but reported if named.
func (c PauseCommand) ResumePools(ctx context.Context) error {
	pools, err := c.selectPools(ctx, verbResume)
	if err != nil {
		return err
	}
	var paused []v1alpha1.BackendPool
	for i := range pools {
		if pools[i].Spec.Paused || len(c.Names) > 0 {
			paused = append(paused, pools[i])
		}
	}
	return c.patchPools(ctx, paused, v1alpha1.BackendPoolSpec{})
}

func (c PauseCommand) selectPools(ctx context.Context, verb string) ([]v1alpha1.BackendPool, error) {
	pools, err := ListPools(ctx, c.API, c.Namespace)
	if err != nil || len(c.Names) == 0 {
		return pools, err
	}
	chosen, err := selectObjects(ctx, c.API, pools, c.Namespace, c.Names, verb)
	return chosen.pools, err
}

func (c PauseCommand) userName(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.API.Create(ctx, review); err != nil {
		return ""
	}
	name := []rune(review.Status.UserInfo.Username)
	return string(name[:min(len(name), MaxReasonLength)])
}

func (c PauseCommand) patchPools(ctx context.Context, pools []v1alpha1.BackendPool, want v1alpha1.BackendPoolSpec) error {
	patch, err := pausePatch(want)
	if err != nil {
		return err
	}
	// An old API server must reject an unknown end of a pause; dropping it would pause forever.
	opts := []client.PatchOption{client.FieldValidation(metav1.FieldValidationStrict)}
	if c.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	done, failed := []Pool{}, []error{}
	for i := range pools {
		p := &pools[i]
		if want.Paused || p.Spec.Paused {
			of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
			of.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BackendPool"))
			if err := c.API.Patch(ctx, of, client.RawPatch(types.MergePatchType, patch), opts...); err != nil {
				failed = append(failed, patchError(p, err))
				continue
			}
		}
		done = append(done, Pool{p.Namespace, p.Name, PoolState(p), want.Paused, p.Spec.Paused, want.Pause, c.DryRun})
	}
	if len(done) > 0 || len(failed) == 0 {
		failed = append(failed, c.printResults(done, want.Paused))
	}
	return errors.Join(failed...)
}

// pausePatch returns a merge patch that removes all fields of an earlier pause.
func pausePatch(want v1alpha1.BackendPoolSpec) ([]byte, error) {
	spec := map[string]any{"paused": nil, "pause": nil}
	if want.Paused {
		spec["paused"] = true
	}
	if p := want.Pause; p != nil {
		pause := map[string]any{"until": nil, "why": nil, "by": nil}
		if p.Until != nil {
			pause["until"] = p.Until
		}
		if p.Why != "" {
			pause["why"] = p.Why
		}
		if p.By != "" {
			pause["by"] = p.By
		}
		spec["pause"] = pause
	}
	return json.Marshal(map[string]any{"spec": spec})
}

func patchError(p *v1alpha1.BackendPool, err error) error {
	help := ""
	if strings.Contains(err.Error(), `unknown field "spec.pause`) {
		help = ": the definitions in the cluster are older than this weir: kubectl apply --server-side -k config/crd"
	}
	return fmt.Errorf("BackendPool %s/%s: %w%s", p.Namespace, p.Name, err, help)
}

func (c PauseCommand) printResults(done []Pool, paused bool) error {
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(done)
	}
	if len(done) == 0 {
		none := "No BackendPool is paused.\n"
		if paused {
			none = "There is no BackendPool.\n"
		}
		_, err := io.WriteString(c.Out, none)
		return err
	}
	for _, p := range done {
		if _, err := fmt.Fprintf(c.Out, "backendpool %s/%s %s\n", p.Namespace, p.Name, p.resultText()); err != nil {
			return err
		}
	}
	return nil
}

func (p Pool) resultText() string {
	verb := "is"
	if p.DryRun {
		verb = "would be"
	}
	switch {
	case p.Paused && (p.Pause == nil || p.Pause.Until == nil):
		return fmt.Sprintf("%s paused without an end: weir resume -n %s %s ends it%s", verb, p.Namespace, p.Name, p.wasText())
	case p.Paused:
		return fmt.Sprintf("%s paused until %s%s", verb, humanize.FormatTime(p.Pause.Until.Time), p.wasText())
	case p.WasPaused:
		return verb + " resumed: changes since the pause are written now"
	}
	return "was not paused"
}

// wasText is the state before the pause.
func (p Pool) wasText() string {
	if p.State == v1alpha1.ReasonPaused {
		return ""
	}
	return "; it was " + p.State
}
