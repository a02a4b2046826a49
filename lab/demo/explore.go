// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"weir.dev/weir/lab/process"
)

// startPage starts the page for browsers and returns its URL.
func (l *lab) startPage(ctx context.Context) (string, error) {
	program, err := l.opts.programPath("weir", "make build")
	if err != nil {
		return "", err
	}
	// Its exit does not end the other processes.
	l.page, err = process.StartCommand(ctx, process.Command{Dir: l.dir, Name: "page", Path: program, Args: []string{
		"page", "--kubeconfig", l.kubeconfig, "--listen", "127.0.0.1:0", "--operator-url", "http://" + l.debugEndpoint,
	}})
	if err != nil {
		return "", err
	}
	line, err := l.page.FirstLine(ctx)
	if err != nil {
		return "", err
	}
	_, address, _ := strings.Cut(line, ": ")
	return address, nil
}

// printHelp prints how to explore while everything keeps running.
func (r *run) printHelp(ctx context.Context) {
	page, err := r.lab.startPage(ctx)
	if err != nil {
		page = "cannot be served: " + err.Error()
	}
	r.print.printPlain("", "All keeps running until Ctrl-C. The page in a browser:", "")
	r.print.writeText(plainText, "  "+page)
	r.print.printPlain("", "In another terminal:", "")
	// These lines are meant to be copied, so they are not wrapped.
	for _, l := range r.helpLines() {
		r.print.writeText(plainText, strings.TrimRight("  "+l, " "))
	}
	r.print.printPlain("", "Azure (ARM)    "+r.lab.endpoint, "its admin API  "+r.lab.admin, "controller log "+r.lab.controller.latest().Log, "logs           "+r.dir)
}

// helpLines are commands to try, by topic.
func (r *run) helpLines() []string {
	kubectl, weir := r.opts.kubectlPath(), filepath.Join(r.opts.programFolder, "weir")
	return []string{
		"export KUBECONFIG=" + r.lab.kubeconfig,
		"",
		"# What is out of sync, and why; the path of a Service; the requests to Azure",
		weir + " status -A",
		weir + " explain service web -n " + namespace,
		weir + " calls --operator-url http://" + r.lab.debugEndpoint + " --since 5m",
		"",
		"# Pause a pool, change its members, and resume",
		weir + " pause -n " + namespace + " service/web --for 10m --why demo",
		fmt.Sprintf("%s -n %s scale deployment web --replicas 6", kubectl, namespace),
		fmt.Sprintf("%s -n %s get services,backendpools", kubectl, namespace),
		weir + " resume -n " + namespace + " service/web",
		"",
		"# Stop a machine",
		kubectl + " annotate node node-2 kubelab.weir.dev/dead=true",
		"",
		"curl -s '" + r.lab.admin + "calls?kind=put'   # writes that Azure received",
		"curl -s http://" + r.lab.metrics + "/metrics | grep ^weir_pool",
	}
}

// kubectlPath returns the kubectl to print: that of PATH, else the one of kubelab.
func (o Options) kubectlPath() string {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return "kubectl"
	}
	return filepath.Join(o.programFolder, "kubectl")
}

func (r *run) printFailure(err error) {
	if err == nil {
		return
	}
	r.print.printPlain("")
	cause := err.Error()
	if end, ok := errors.AsType[*process.UnexpectedExit](err); ok && end.Process.ExitCode() >= 0 { // the last line of a killed process is no cause
		if last := end.Process.TailLines(1)[0]; last != "" {
			cause = last
			defer r.print.printDetail(err.Error())
		}
	}
	r.print.printLine(redText, "FAILED", cause)
	if late, ok := errors.AsType[*syncTimeoutError](err); ok {
		for _, line := range late.details {
			r.print.printDetail(line)
		}
	}
	if unseen, ok := errors.AsType[*notVisibleError](err); ok {
		r.print.printVerbatim(plainText, unseen.details...) // wrapped already
	}
	if end, ok := errors.AsType[*process.UnexpectedExit](err); ok {
		for _, line := range end.Process.TailLines(8) {
			r.print.printDetail(line)
		}
	}
}
