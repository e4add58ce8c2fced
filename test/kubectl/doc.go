// Package kubectl tests the server with the real kubectl, by scripts that read
// like an operator's terminal.
//
// A script is a txtar file in testdata: commands above, the files they use
// below. Each has a server of its own, a child process with TLS and the
// kubeconfig that it writes, and kubectl, built from k8s.io/kubectl. Beside the
// commands of testscript (exec, stdin, stdout, stderr, cmp, cp, env, grep) there
// are:
//
//	serve [flags]             run `evenkeel serve` until the script ends; it is ready when this returns
//	kubectl args...           run kubectl; ! says that it must fail
//	evenkeel args...          run evenkeel
//	start name program args   run a program beside the script
//	await name regexp         wait until that program has written a line like this
//	finish name               wait until that program has ended; stdout is all it wrote
//	end name                  ask that program to end, and wait for it
//	crash name                kill that program
//	match stdout|stderr|file want
//	                          compare with a file, see below
//	capture VARIABLE program args
//	                          run a program, and set a variable to what it writes
//	fetch url                 get a page; stdout is what it says
//	free VARIABLE             set a variable to an address that nobody listens on
//
// match takes runs of blanks for one blank. In what is wanted <age>, <time>,
// <uid>, <ip>, <port>, <number> and <word> stand for anything of that form, and
// a line of three dots for any lines.
//
// What the scripts want was compared with kube-apiserver: they run against any
// program that takes the flags of `evenkeel serve` and says when it is ready
// like it, if EVENKEEL_SERVER names that program.
package kubectl
