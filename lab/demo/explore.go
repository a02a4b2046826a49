// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
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
		"page", "--kubeconfig", l.kubeconfig, "--listen", "127.0.0.1:0", "--server", "http://" + l.debugEndpoint,
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
		page = "is not to be had: " + err.Error()
	}
	kubectl := filepath.Join(r.opts.programFolder, "kubectl")
	r.print.printPlain("", "All keeps running until Ctrl-C. In a browser:", "")
	r.print.writeText(plainText, "  "+page)
	r.print.printPlain("", "In another terminal:", "")
	// These lines are meant to be copied, so they are not wrapped.
	for _, l := range []string{
		"  export KUBECONFIG=" + r.lab.kubeconfig,
		fmt.Sprintf("  %s -n %s get backendpools,pods -o wide", kubectl, namespace),
		fmt.Sprintf("  %s -n %s scale deployment web --replicas 2", kubectl, namespace),
		fmt.Sprintf("  %s -n %s describe service,backendpool", kubectl, namespace),
		fmt.Sprintf("  %s annotate node node-2 kubelab.weir.dev/dead=true", kubectl),
		"  curl '" + r.lab.admin + "calls?kind=put'",
		"  curl http://" + r.lab.metrics + "/metrics",
		"  tail -f " + r.lab.controller.Log,
	} {
		r.print.writeText(plainText, l)
	}
	r.print.printPlain("", "Azure (ARM)    "+r.lab.endpoint, "its admin API  "+r.lab.admin, "logs           "+r.dir)
}

func (r *run) printFailure(err error) {
	if err == nil {
		return
	}
	r.print.printPlain("")
	r.print.printLine(redText, "FAILED", err.Error())
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
