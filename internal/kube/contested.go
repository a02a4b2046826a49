// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/balancer"
)

// EventContested is the reason of the event, and of the condition, that tell of somebody else
// who keeps undoing what Weir writes for a Service.
const EventContested = "LoadBalancerContested"

// ConditionContested is the type of the condition on a Service. It is there during a fight
// alone.
const ConditionContested = "weir.dev/Contested"

// WriteAgainAnnotation has Weir write at once what somebody else has undone, whenever its
// value becomes another one.
const WriteAgainAnnotation = "weir.dev/write-again"

// contested tells of the fights about what a Service has, once a turn, and keeps the condition
// as long as there are any.
func (c *Cluster) contested(ctx context.Context, s *corev1.Service, cl *claim, contests []balancer.Contest) error {
	if cl.ghost {
		return nil
	}
	var texts []string
	for _, contest := range contests {
		texts = append(texts, contestText(contest, maxMessage/len(contests)))
	}
	if err := c.writeContested(ctx, s, strings.Join(texts, ". ")); err != nil {
		return err
	}
	for i, contest := range contests {
		told := slices.ContainsFunc(cl.contests, func(o balancer.Contest) bool { return o.In == contest.In && o.Until.Equal(contest.Until) })
		if !told && !contest.Until.IsZero() {
			c.events.add(s, corev1.EventTypeWarning, EventContested, sentence(texts[i], maxMessage))
		}
	}
	cl.contests = contests
	return nil
}

// contestText says in at most limit bytes what is undone, and what Weir does about it.
func contestText(c balancer.Contest, limit int) string {
	what := fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. ", c.In)
	what += "Weir has written it again since, and looks whether it stays"
	if !c.Until.IsZero() {
		what = fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. Weir leaves it so until %s, unless the Service changes or its annotation %s does",
			c.In, stamp(c.Until), WriteAgainAnnotation)
	}
	return sentence(strings.Join(c.Undone, "; "), max(limit-len(what), maxMessage/8)) + what
}

// writeContested writes the condition; without words it goes. The patch names ours alone: those
// of others, of which the informer's copy has none, stay as they are.
func (c *Cluster) writeContested(ctx context.Context, s *corev1.Service, why string) error {
	conditions := onlyContested(s.Status.Conditions)
	var part any
	switch {
	case why == "" && conditions == nil:
		return nil
	case why == "":
		part = map[string]string{"$patch": "delete", "type": ConditionContested}
	default:
		changed := meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: ConditionContested, Status: metav1.ConditionTrue, Reason: EventContested, Message: sentence(why, maxMessage),
		})
		if !changed {
			return nil
		}
		part = conditions[0]
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{part}}})
	if err == nil {
		err = c.mgr.GetClient().Status().Patch(ctx, s.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(fieldOwner))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("condition of Service %s: %w", key(s.Namespace, s.Name), err)
	}
	return nil
}

// truce is when the first of the fights is taken up again; zero if there is none.
func truce(contests []balancer.Contest) (first time.Time) {
	for _, c := range contests {
		if first.IsZero() || !c.Until.IsZero() && c.Until.Before(first) {
			first = c.Until
		}
	}
	return first
}

// Contested counts by kind what somebody else keeps undoing. Its cost grows with the number of
// BackendPools.
func (c *Cluster) Contested() map[string]int {
	count := map[string]int{"Service": c.ServiceStates()[string(stateFought)], "BackendPool": 0}
	c.statuses.mu.Lock()
	entries := slices.Collect(maps.Values(c.statuses.byRef))
	c.statuses.mu.Unlock()
	for _, e := range entries {
		if e.contested() {
			count["BackendPool"]++
		}
	}
	return count
}

// onlyContested keeps of the conditions that which Weir writes.
func onlyContested(conditions []metav1.Condition) []metav1.Condition {
	if c := meta.FindStatusCondition(conditions, ConditionContested); c != nil {
		return []metav1.Condition{*c}
	}
	return nil
}
