// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// Bounds for the head and the tail of a log, in bytes. An attempt's log holds 64 KiB for all steps.
const (
	maxHeadBytes = 8 << 10
	maxEndBytes  = 32 << 10
)

// jobReadTimeout suffices for 32 KiB at 1 kB/s.
const jobReadTimeout = time.Minute

// tokenPattern matches ServiceAccount tokens, which a container may print.
var tokenPattern = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)

// JobLogReader copies the output of a Job's container into an attempt's log. Not safe for concurrent use.
type JobLogReader struct {
	API  client.Reader
	Pods typedcorev1.PodsGetter
	Log  *policy.Log
	tail tailOutput
	// hiddenReason is why the output is withheld: a Secret that cannot be read cannot be redacted.
	hiddenReason error
}

// HideSecrets redacts the container's Secrets in the log.
func (r *JobLogReader) HideSecrets(ctx context.Context, namespace string, env []v1alpha1.JobEnv) error {
	var values []string
	for _, e := range env {
		if e.SecretKeyRef == nil {
			continue
		}
		secret := &corev1.Secret{}
		err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: e.SecretKeyRef.Name}, secret)
		switch value, ok := secret.Data[e.SecretKeyRef.Key]; {
		case err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown: // no response of an API server
			return fmt.Errorf("Secret %s: %w", e.SecretKeyRef.Name, err) //nolint:staticcheck // it begins with a kind
		case err != nil:
			r.hiddenReason = fmt.Errorf("Secret %s, which it may quote, cannot be read (%s)", e.SecretKeyRef.Name, apierrors.ReasonForError(err)) //nolint:staticcheck // it begins with a kind
		case !ok:
			r.hiddenReason = fmt.Errorf("Secret %s has no key %s", e.SecretKeyRef.Name, e.SecretKeyRef.Key) //nolint:staticcheck // it begins with a kind
		case len(value) > 0:
			values = append(values, string(value))
		}
	}
	r.Log.HideSecrets(values...)
	return nil
}

// CopyLog appends the beginning and the end of the container's output and returns the Job's pod.
// Errors are only logged.
func (r *JobLogReader) CopyLog(ctx context.Context, job *batchv1.Job) *corev1.Pod {
	ctx, cancel := context.WithTimeout(ctx, jobReadTimeout)
	defer cancel()
	pod, err := r.NewestPod(ctx, job)
	switch {
	case err != nil:
		r.logf("the log of its pod cannot be read: %v", err)
		return nil
	case pod == nil:
		r.logf("the log was deleted with the pod")
		return nil
	case r.hiddenReason != nil:
		r.logf("the log of pod %s is left out: %v", pod.Name, r.hiddenReason)
		return pod
	}
	lines, err := r.readLog(ctx, pod)
	if pod.Name == r.tail.pod && len(lines) > 0 {
		r.tail = tailOutput{} // superseded
	}
	r.AppendTail()
	r.appendLines(r.Log, lines)
	if err != nil {
		r.logf("the log of pod %s cannot be read: %v", pod.Name, err)
	}
	return pod
}

func (r *JobLogReader) appendLines(log *policy.Log, lines []logLine) {
	for _, l := range lines {
		log.AddLine(cmp.Or(l.at, time.Now()), "| "+r.cleanLine(l.text))
	}
}

func (r *JobLogReader) logf(format string, args ...any) {
	r.Log.AddLine(time.Now(), fmt.Sprintf(format, args...))
}

func (r *JobLogReader) cleanLine(line string) string {
	return tokenPattern.ReplaceAllString(r.Log.CleanText(line), "[hidden]")
}

type logLine struct {
	at   time.Time
	text string
}

func (r *JobLogReader) readLog(ctx context.Context, pod *corev1.Pod) ([]logLine, error) {
	text, complete, err := r.readRange(ctx, pod, corev1.PodLogOptions{LimitBytes: new(int64(maxHeadBytes))})
	if err != nil || complete {
		return text, err
	}
	for _, lines := range []int64{100, 10, 1} { // long lines: the last ones would be cut off
		tail, complete, err := r.readRange(ctx, pod, corev1.PodLogOptions{TailLines: &lines, LimitBytes: new(int64(maxEndBytes))})
		if err != nil {
			return text, err
		}
		if complete || lines == 1 {
			if len(text) > 0 {
				last := text[len(text)-1].at
				tail = slices.DeleteFunc(tail, func(l logLine) bool { return !l.at.After(last) })
			}
			return append(append(text, logLine{text: "…"}), tail...), nil
		}
	}
	return text, nil
}

// readRange reports whether the part is complete. It drops a truncated line, because the cut may
// split a secret.
func (r *JobLogReader) readRange(ctx context.Context, pod *corev1.Pod, part corev1.PodLogOptions) ([]logLine, bool, error) {
	part.Container, part.Timestamps = JobContainer, true
	stream, err := r.Pods.Pods(pod.Namespace).GetLogs(pod.Name, &part).Stream(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(io.LimitReader(stream, *part.LimitBytes))
	complete := int64(len(text)) < *part.LimitBytes
	if err != nil || !complete {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return parseLines(string(text)), complete, err
}

func parseLines(text string) []logLine {
	var lines []logLine
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		stamp, rest, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			at, rest = time.Time{}, line
		}
		lines = append(lines, logLine{at, rest})
	}
	return lines
}
