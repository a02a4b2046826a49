// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type podRun struct {
	takes   time.Duration // 0 means forever
	code    int32
	evicted bool
	lost    bool // node lost, with its logs
	says    string
}

// jobCluster is a fake target with API server, Job controller and kubelet.
type jobCluster struct {
	runs []podRun // per pod; the last one repeats

	// quicker makes another process create each Job first.
	quicker bool
	// silent leaves log requests unanswered.
	silent bool

	mu        sync.Mutex
	away      bool
	job       *batchv1.Job
	pods      []*corev1.Pod
	logs      map[string]string
	secret    map[string][]byte // contents of the Secret token; nil means forbidden
	made      int
	deleted   int
	begun     int
	atWork    int
	maxAtWork int
	asked     []string
}

func (c *jobCluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		resetConnection(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	path := req.URL.Path
	c.asked = append(c.asked, req.Method+" "+path)
	switch {
	case path == "/api":
		writeJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: "batch/v1", Version: "v1"}
		writeJSON(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: "batch", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
		}})
	case path == "/api/v1":
		writeJSON(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true},
		}})
	case path == "/apis/batch/v1":
		writeJSON(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "batch/v1", APIResources: []metav1.APIResource{
			{Name: "jobs", Kind: "Job", Namespaced: true},
		}})
	case strings.Contains(path, "/jobs"):
		c.serveJobs(w, req)
	case strings.HasSuffix(path, "/pods"):
		c.listPods(w, req)
	case strings.HasSuffix(path, "/log") && c.silent:
		c.mu.Unlock()
		<-req.Context().Done()
		c.mu.Lock()
	case strings.HasSuffix(path, "/log"):
		c.serveLog(w, req)
	case strings.HasSuffix(path, "/secrets/token") && c.secret != nil:
		writeJSON(w, corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: c.secret})
	case strings.HasSuffix(path, "/secrets/token"):
		writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	default:
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func writeStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.WriteHeader(int(code))
	writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Reason: reason, Message: "no"})
}

func (c *jobCluster) serveJobs(w http.ResponseWriter, req *http.Request) {
	switch ok := c.job != nil; {
	case req.Method == http.MethodPost && ok:
		writeStatus(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case req.Method == http.MethodPost && c.quicker:
		c.createJob(httptest.NewRecorder(), req)
		writeStatus(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case req.Method == http.MethodPost:
		c.createJob(w, req)
	case !ok || !strings.HasSuffix(req.URL.Path, "/"+c.job.Name):
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case req.Method == http.MethodPatch:
		var patch batchv1.Job
		_ = json.NewDecoder(req.Body).Decode(&patch)
		if patch.UID != c.job.UID {
			writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		for name, value := range patch.Annotations {
			c.job.Annotations[name] = value
		}
		c.job.Spec.ActiveDeadlineSeconds = patch.Spec.ActiveDeadlineSeconds
		writeJSON(w, c.job)
	case req.Method == http.MethodDelete:
		var opts metav1.DeleteOptions
		_ = json.NewDecoder(req.Body).Decode(&opts)
		if opts.PropagationPolicy == nil || *opts.PropagationPolicy != metav1.DeletePropagationForeground || *opts.Preconditions.UID != c.job.UID {
			writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		c.deleteJob()
		writeJSON(w, c.job)
	default:
		writeJSON(w, c.job)
	}
}

func (c *jobCluster) createJob(w http.ResponseWriter, req *http.Request) {
	job := &batchv1.Job{}
	_ = json.NewDecoder(req.Body).Decode(job)
	c.made++
	job.UID, job.Status.StartTime = types.UID(fmt.Sprint("job-", c.made)), new(metav1.Now())
	c.job = job
	c.startPod(job)
	c.watchDeadline(job, time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second)
	writeJSON(w, job)
}

func (c *jobCluster) watchDeadline(job *batchv1.Job, in time.Duration) {
	time.AfterFunc(in, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		remaining := time.Until(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second))
		if remaining > 0 {
			c.watchDeadline(job, remaining)
			return
		}
		if c.job == job && len(job.Status.Conditions) == 0 {
			c.stopPod()
			c.finishJob(job, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
		}
	})
}

func (c *jobCluster) startPod(job *batchv1.Job) {
	run := c.runs[0]
	if len(c.runs) > 1 {
		c.runs = c.runs[1:]
	}
	c.begun++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: fmt.Sprintf("pod-%d", c.begun), CreationTimestamp: metav1.Now(),
		Labels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)},
	}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	c.pods = append(c.pods, pod)
	if c.logs == nil {
		c.logs = map[string]string{}
	}
	at := time.Now().UTC()
	for line := range strings.Lines(run.says) {
		at = at.Add(time.Nanosecond)
		c.logs[pod.Name] += at.Format(time.RFC3339Nano) + " " + line
	}
	c.atWork++
	c.maxAtWork = max(c.maxAtWork, c.atWork)
	job.Status.Ready = new(int32(1))
	if run.takes > 0 {
		time.AfterFunc(run.takes, func() { c.finishPod(job, pod, run) })
	}
}

// finishPod acts as the Job controller, applying the pod failure policy.
func (c *jobCluster) finishPod(job *batchv1.Job, pod *corev1.Pod, run podRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job != job || job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 {
		return
	}
	c.stopPod()
	last := strings.TrimSpace(run.says)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: JobContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: run.code, Message: last},
	}}}
	pod.Status.Phase = corev1.PodFailed
	if run.lost {
		c.pods, run.evicted = slices.DeleteFunc(c.pods, func(p *corev1.Pod) bool { return p == pod }), true
		delete(c.logs, pod.Name)
	}
	if run.evicted {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	}
	if run.code == 0 && !run.evicted {
		pod.Status.Phase = corev1.PodSucceeded
		c.finishJob(job, batchv1.JobComplete, "")
		return
	}
	switch actionFor(job.Spec.PodFailurePolicy, pod, run.code) {
	case batchv1.PodFailurePolicyActionIgnore:
		c.startPod(job)
	case batchv1.PodFailurePolicyActionFailJob:
		c.finishJob(job, batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy)
	default:
		c.finishJob(job, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	}
}

func actionFor(policy *batchv1.PodFailurePolicy, pod *corev1.Pod, code int32) batchv1.PodFailurePolicyAction {
	for _, rule := range policy.Rules {
		if rule.OnExitCodes != nil && slices.Contains(rule.OnExitCodes.Values, code) {
			return rule.Action
		}
		for _, on := range rule.OnPodConditions {
			if len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Type == on.Type {
				return rule.Action
			}
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

func (c *jobCluster) finishJob(job *batchv1.Job, how batchv1.JobConditionType, reason string) {
	job.Status.Ready = nil
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, Reason: reason, Message: "so it is"}}
}

func (c *jobCluster) stopPod() { c.atWork-- }

func (c *jobCluster) deleteJob() {
	if c.job.DeletionTimestamp != nil {
		return
	}
	c.job.DeletionTimestamp = new(metav1.Now())
	job, works := c.job, len(c.job.Status.Conditions) == 0
	time.AfterFunc(20*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if works {
			c.stopPod()
		}
		if c.job == job {
			c.job = nil
		}
		c.deleted++
		c.pods = slices.DeleteFunc(c.pods, func(p *corev1.Pod) bool { return p.Labels[batchv1.ControllerUidLabel] == string(job.UID) })
	})
}

func (c *jobCluster) listPods(w http.ResponseWriter, req *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, p := range c.pods {
		if req.URL.Query().Get("labelSelector") == batchv1.ControllerUidLabel+"="+p.Labels[batchv1.ControllerUidLabel] {
			list.Items = append(list.Items, *p)
		}
	}
	writeJSON(w, list)
}

func (c *jobCluster) serveLog(w http.ResponseWriter, req *http.Request) {
	part := strings.Split(req.URL.Path, "/")
	text, query := c.logs[part[len(part)-2]], req.URL.Query()
	if limit, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		lines := slices.Collect(strings.Lines(text))
		text = strings.Join(lines[max(0, len(lines)-limit):], "")
	}
	if limit, err := strconv.Atoi(query.Get("limitBytes")); err == nil {
		text = text[:min(len(text), limit)]
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = fmt.Fprint(w, text)
}
