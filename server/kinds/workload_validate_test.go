package kinds

import (
	"strings"
	"testing"
)

// workloadTemplate is a template that is fine, with further fields of its spec.
func workloadTemplate(more string) string {
	return `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]` + more + `}}`
}

// controllerDoc is a controller that is fine, with further fields of its spec.
func controllerDoc(more ...string) string {
	return `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + strings.Join(append(more, workloadTemplate("")), ",") + `}}`
}

func jobDoc(more ...string) string {
	return `{"metadata":{"name":"x"},"spec":{` + strings.Join(append(more, workloadTemplate(`,"restartPolicy":"Never"`)), ",") + `}}`
}

func TestAppsValidation(t *testing.T) {
	runWorkloadCases(t, map[string]workloadCase{
		"deployment": {resource: "deployments", doc: controllerDoc()},
		"deployment with odd numbers": {resource: "deployments", doc: controllerDoc(`"minReadySeconds":-1,"revisionHistoryLimit":-1,"progressDeadlineSeconds":-2`), want: []string{
			"FieldValueInvalid spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
			"FieldValueInvalid spec.progressDeadlineSeconds: Invalid value: -2: must be greater than minReadySeconds",
			"FieldValueInvalid spec.progressDeadlineSeconds: Invalid value: -2: must be greater than or equal to 0",
			"FieldValueInvalid spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
		}},
		"deployment with an odd strategy": {resource: "deployments", doc: controllerDoc(`"strategy":{"type":"Odd"}`), want: []string{
			`FieldValueNotSupported spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"`,
		}},
		"deployment that rolls nowhere": {resource: "deployments", doc: controllerDoc(`"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":"0%"}}`), want: []string{
			"FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
		}},
		"deployment with odd percentages": {resource: "deployments", doc: controllerDoc(`"strategy":{"rollingUpdate":{"maxUnavailable":"101%","maxSurge":"x"}}`), want: []string{
			`FieldValueInvalid spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`,
			`FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%`,
		}},
		"deployment that recreates and rolls": {resource: "deployments", doc: controllerDoc(`"strategy":{"type":"Recreate","rollingUpdate":{}}`), want: []string{
			"FieldValueForbidden spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
		}},
		"deployment of pods that end": {resource: "deployments", doc: `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + workloadTemplate(`,"restartPolicy":"Never","activeDeadlineSeconds":3`) + `}}`, want: []string{
			"FieldValueForbidden spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
			`FieldValueNotSupported spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		}},
		"replica set that selects all": {resource: "replicasets", doc: `{"spec":{"selector":{},` + workloadTemplate("") + `}}`, want: []string{
			"FieldValueInvalid spec.selector: Invalid value: {}: empty selector is invalid for deployment",
		}},
		"replica set that selects nothing known": {resource: "replicasets", doc: `{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]},` + workloadTemplate("") + `}}`, want: []string{
			`FieldValueInvalid spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator`,
			`FieldValueInvalid spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Odd"}]}: invalid label selector`,
		}},
		"daemon set": {resource: "daemonsets", doc: controllerDoc()},
		"daemon set that selects nothing": {resource: "daemonsets", doc: `{"spec":{` + workloadTemplate("") + `}}`, want: []string{
			"FieldValueInvalid spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
		}},
		"daemon set that rolls both ways": {resource: "daemonsets", doc: controllerDoc(`"updateStrategy":{"rollingUpdate":{"maxSurge":1}}`), want: []string{
			"FieldValueInvalid spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
		}},
		"daemon set that rolls nowhere": {resource: "daemonsets", doc: controllerDoc(`"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}`), want: []string{
			"FieldValueRequired spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
		}},
		"stateful set": {resource: "statefulsets", doc: controllerDoc(`"serviceName":"s"`)},
		"stateful set whose pods use its claims": {resource: "statefulsets", doc: `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"hostname":"h","containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/v"}]}]}},
			"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`},
		"odd stateful set": {resource: "statefulsets", doc: controllerDoc(`"podManagementPolicy":"Odd","updateStrategy":{"type":"Odd"},"serviceName":"S","ordinals":{"start":-1},"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Odd"},"volumeClaimTemplates":[{"metadata":{"name":"v"}}]`), want: []string{
			"FieldValueInvalid spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
			`FieldValueInvalid spec.podManagementPolicy: Invalid value: "Odd": must be 'OrderedReady' or 'Parallel'`,
			`FieldValueInvalid spec.serviceName: Invalid value: "S": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`FieldValueInvalid spec.updateStrategy: Invalid value: {"Type":"Odd","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'`,
			`FieldValueNotSupported spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Odd": supported values: "Retain", "Delete"`,
			"FieldValueRequired spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
			"FieldValueRequired spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
		}},
		"revision": {resource: "controllerrevisions", doc: `{"data":{},"revision":1}`},
		"revision without data": {resource: "controllerrevisions", doc: `{"revision":-1}`, want: []string{
			"FieldValueInvalid revision: Invalid value: -1: must be greater than or equal to 0", "FieldValueRequired data: Required value: data is mandatory",
		}},
		"revision of a list": {resource: "controllerrevisions", doc: `{"data":[1]}`, want: []string{"FieldValueRequired data: Required value: data must be a valid JSON object"}},
		"controller of nothing": {resource: "replicationcontrollers", doc: `{"spec":{}}`, want: []string{
			"FieldValueRequired spec.selector: Required value", "FieldValueRequired spec.template: Required value",
		}},
	})
}

func TestAppsUpdates(t *testing.T) {
	const forbidden = "FieldValueForbidden spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
	other := strings.NewReplacer(`"a":"b"`, `"a":"b","c":"d"`)
	runWorkloadCases(t, map[string]workloadCase{
		"deployment is scaled": {resource: "deployments", old: controllerDoc(), doc: controllerDoc(`"replicas":5`)},
		"deployment selects others": {resource: "deployments", old: controllerDoc(), doc: other.Replace(controllerDoc()), want: []string{
			`FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable`,
		}},
		"replica set selects others": {resource: "replicasets", old: controllerDoc(), doc: other.Replace(controllerDoc()), want: []string{
			`FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable`,
		}},
		"daemon set selects others": {resource: "daemonsets", old: controllerDoc(), doc: other.Replace(controllerDoc()), want: []string{
			`FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable`,
		}},
		"stateful set is scaled":          {resource: "statefulsets", old: controllerDoc(), doc: controllerDoc(`"replicas":5,"minReadySeconds":2,"ordinals":{"start":1}`)},
		"stateful set changes its claims": {resource: "statefulsets", old: controllerDoc(), doc: controllerDoc(`"volumeClaimTemplates":[{"metadata":{"name":"v"}}]`), want: []string{forbidden}},
		"stateful set moves":              {resource: "statefulsets", old: controllerDoc(), doc: controllerDoc(`"serviceName":"other"`), want: []string{forbidden}},
		"revision changes":                {resource: "controllerrevisions", old: `{"data":{"a":1}}`, doc: `{"data":{"a":2}}`, want: []string{`FieldValueInvalid data: Invalid value: {"a":2}: field is immutable`}},
		"deployment reports odd counts": {resource: "deployments", status: true, old: controllerDoc(), doc: `{"status":{"replicas":1,"updatedReplicas":2,"readyReplicas":-1,"availableReplicas":3,"collisionCount":-1}}`, want: []string{
			"FieldValueInvalid status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
			"FieldValueInvalid status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
			"FieldValueInvalid status.collisionCount: Invalid value: -1: must be greater than or equal to 0",
			"FieldValueInvalid status.readyReplicas: Invalid value: -1: must be greater than or equal to 0",
			"FieldValueInvalid status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
		}},
		"stateful set reports odd counts": {resource: "statefulsets", status: true, old: controllerDoc(), doc: `{"status":{"replicas":1,"readyReplicas":1,"availableReplicas":2}}`, want: []string{
			"FieldValueInvalid status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas",
			"FieldValueInvalid status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
		}},
		"controller reports odd counts": {resource: "replicationcontrollers", status: true, old: `{"spec":{` + workloadTemplate("") + `}}`, doc: `{"status":{"replicas":1,"fullyLabeledReplicas":2}}`, want: []string{
			"FieldValueInvalid status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
		}},
	})
}

func TestJobValidation(t *testing.T) {
	runWorkloadCases(t, map[string]workloadCase{
		"job": {resource: "jobs", doc: jobDoc()},
		"odd job": {resource: "jobs", doc: jobDoc(`"completionMode":"Odd","managedBy":"x","backoffLimit":-1,"ttlSecondsAfterFinished":-1,"podReplacementPolicy":"Odd"`), want: []string{
			"FieldValueInvalid spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
			`FieldValueInvalid spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")`,
			"FieldValueInvalid spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0",
			`FieldValueNotSupported spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", "Indexed"`,
			`FieldValueNotSupported spec.podReplacementPolicy: Unsupported value: "Odd": supported values: "Failed", "TerminatingOrFailed"`,
		}},
		"indexed fields without indexes": {resource: "jobs", doc: jobDoc(`"backoffLimitPerIndex":1,"maxFailedIndexes":1,"successPolicy":{"rules":[]}`), want: []string{
			"FieldValueInvalid spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
			"FieldValueInvalid spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
			`FieldValueInvalid spec.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode`,
		}},
		"too many indexes": {resource: "jobs", doc: jobDoc(`"completionMode":"Indexed","completions":200000,"parallelism":100001,"backoffLimitPerIndex":1`), want: []string{
			"FieldValueInvalid spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
			"FieldValueInvalid spec.parallelism: Invalid value: 100001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index",
			"FieldValueRequired spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
		}},
		"success of indexes that are not": {resource: "jobs", doc: jobDoc(`"completionMode":"Indexed","completions":3,"successPolicy":{"rules":[{},{"succeededIndexes":"0-5"},{"succeededIndexes":"0,1","succeededCount":3},{"succeededIndexes":"1,1"}]}`), want: []string{
			`FieldValueInvalid spec.successPolicy.rules[1].succeededIndexes: Invalid value: "0-5": error parsing succeededIndexes: too large index: "5"`,
			"FieldValueInvalid spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
			`FieldValueInvalid spec.successPolicy.rules[3].succeededIndexes: Invalid value: "1,1": error parsing succeededIndexes: non-increasing order, previous: 1, current: 1`,
			"FieldValueRequired spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified",
		}},
		"failure policy": {resource: "jobs", doc: jobDoc(`"podFailurePolicy":{"rules":[{"action":"Odd"},{"action":"FailIndex","onExitCodes":{"operator":"In","containerName":"x","values":[2,0,2]},"onPodConditions":[{"type":"!","status":"x"}]}]}`), want: []string{
			`FieldValueDuplicate spec.podFailurePolicy.rules[1].onExitCodes.values[2]: Duplicate value: 2`,
			`FieldValueInvalid spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1].onExitCodes.values: Invalid value: [2,0,2]: must be ordered`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1].onPodConditions[0].type: Invalid value: "!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			`FieldValueInvalid spec.podFailurePolicy.rules[1]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported`,
			`FieldValueNotSupported spec.podFailurePolicy.rules[0].action: Unsupported value: "Odd": supported values: "Count", "FailIndex", "FailJob", "Ignore"`,
			`FieldValueNotSupported spec.podFailurePolicy.rules[1].onPodConditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"`,
		}},
		"selector of the user": {resource: "jobs", doc: jobDoc(`"selector":{"matchLabels":{"a":"b"}}`), want: []string{
			`FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"` + workloadUID + `"}}: ` + "`selector` not auto-generated",
		}},
		"label of the user": {resource: "jobs", doc: strings.Replace(jobDoc(), `"a":"b"`, `"job-name":"y"`, 1), want: []string{
			`FieldValueInvalid spec.template.metadata.labels[job-name]: Invalid value: {"batch.kubernetes.io/controller-uid":"` + workloadUID + `","batch.kubernetes.io/job-name":"x","controller-uid":"` + workloadUID + `","job-name":"y"}: must be 'x'`,
		}},
		"cron job without a schedule": {resource: "cronjobs", doc: `{"metadata":{"name":"x"},"spec":{"jobTemplate":` + jobDoc(`"manualSelector":true`) + `}}`, want: []string{
			`FieldValueNotSupported spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"`,
			"FieldValueRequired spec.schedule: Required value",
		}},
		"cron job in a zone": {resource: "cronjobs", doc: `{"metadata":{"name":"` + strings.Repeat("x", 53) + `"},"spec":{"schedule":"TZ=UTC * * * * *","timeZone":"Nowhere/Land","jobTemplate":` + jobDoc() + `}}`, want: []string{
			`FieldValueInvalid metadata.name: Invalid value: "` + strings.Repeat("x", 53) + `": must be no more than 52 characters`,
			`FieldValueInvalid spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`,
			`FieldValueInvalid spec.timeZone: Invalid value: "Nowhere/Land": unknown time zone Nowhere/Land`,
		}},
		"cron job at a place": {resource: "cronjobs", doc: `{"metadata":{"name":"x"},"spec":{"schedule":"@daily","timeZone":"Europe/Berlin","jobTemplate":` + jobDoc() + `}}`},
		"cron job here": {resource: "cronjobs", doc: `{"metadata":{"name":"x"},"spec":{"schedule":"@daily","timeZone":"local","jobTemplate":` + jobDoc() + `}}`, want: []string{
			`FieldValueInvalid spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones`,
			`FieldValueInvalid spec.timeZone: Invalid value: "local": unknown time zone local`,
		}},
	})
}

func TestJobUpdates(t *testing.T) {
	suspended := jobDoc(`"suspend":true`)
	made := func(doc string) string { // with the labels and the selector of the old job
		doc = strings.Replace(doc, `"a":"b"`, `"a":"b","batch.kubernetes.io/controller-uid":"`+workloadUID+`","batch.kubernetes.io/job-name":"x","controller-uid":"`+workloadUID+`","job-name":"x"`, 1)
		return strings.Replace(doc, `"spec":{`, `"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"`+workloadUID+`"}},`, 1)
	}
	const indexed = `"completionMode":"Indexed","completions":2,"parallelism":2`
	runWorkloadCases(t, map[string]workloadCase{
		"more at a time":   {resource: "jobs", old: jobDoc(), doc: made(jobDoc(`"parallelism":3,"completions":1`))},
		"more completions": {resource: "jobs", old: jobDoc(), doc: made(jobDoc(`"completions":3`)), want: []string{"FieldValueInvalid spec.completions: Invalid value: 3: field is immutable"}},
		"indexed job is scaled": {resource: "jobs", old: jobDoc(indexed), doc: made(jobDoc(
			strings.ReplaceAll(indexed, "2", "3")))},
		"indexed job is half scaled": {resource: "jobs", old: jobDoc(indexed), doc: made(jobDoc(strings.Replace(indexed, "2", "3", 1))), want: []string{
			"FieldValueInvalid spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism",
		}},
		"suspended job moves":           {resource: "jobs", old: suspended, doc: made(strings.Replace(suspended, `"containers"`, `"nodeSelector":{"x":"y"},"containers"`, 1))},
		"suspended job wants more":      {resource: "jobs", old: suspended, doc: made(strings.Replace(suspended, `"image":"i"`, `"image":"i","resources":{"limits":{"cpu":"1"}}`, 1))},
		"errors of the spec come twice": {resource: "jobs", old: jobDoc(), doc: made(jobDoc(`"backoffLimit":-1`)), want: []string{"FieldValueInvalid spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0", "FieldValueInvalid spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"}},
		"finished and running": {resource: "jobs", status: true, old: jobDoc(), doc: `{"spec":{"manualSelector":true},"status":{"active":1,"ready":2,"conditions":[{"type":"Complete","status":"True"}]}}`, want: []string{
			"FieldValueInvalid status.active: Invalid value: 1: active>0 is invalid for finished job",
			"FieldValueInvalid status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
			"FieldValueInvalid status.ready: Invalid value: 2: cannot set more ready pods than active",
			"FieldValueRequired status.completionTime: Required value: completionTime is required for Complete jobs",
			"FieldValueRequired status.startTime: Required value: startTime is required for finished job",
		}},
		"indexes that overlap": {resource: "jobs", status: true, old: jobDoc(indexed), doc: `{"spec":{"completionMode":"Indexed","completions":4,"parallelism":4,"backoffLimitPerIndex":1},"status":{"completedIndexes":"0-2","failedIndexes":"2"}}`, want: []string{
			`FieldValueInvalid status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2`,
		}},
	})
	c := workloadCase{resource: "jobs", old: jobDoc(), doc: made(strings.Replace(jobDoc(), `"image":"i"`, `"image":"j"`, 1))}
	if got := workloadCauses(t, c); len(got) != 1 || !strings.HasPrefix(got[0], "FieldValueInvalid spec.template: Invalid value: ") || !strings.HasSuffix(got[0], ": field is immutable") {
		t.Errorf("another image: %v", got)
	}
}

func TestSchedules(t *testing.T) {
	for schedule, want := range map[string]string{
		"* * * * *": "", "*/5 0-3,7 ? JAN-mar sun": "", "@hourly": "", "@every 1h30m": "", "0 0 1 1 0,": "", "5/10 * * * *": "", "TZ=UTC @daily": "",
		"* * * *":             "expected exactly 5 fields, found 4: [* * * *]",
		"60 * * * *":          "end of range (60) above maximum (59): 60",
		"* * 0 * *":           "beginning of range (0) below minimum (1): 0",
		"* * * * 7":           "end of range (7) above maximum (6): 7",
		"5-1 * * * *":         "beginning of range (5) beyond end of range (1): 5-1",
		"1-2-3 * * * *":       "too many hyphens: 1-2-3",
		"*/1/2 * * * *":       "too many slashes: */1/2",
		"*/0 * * * *":         "step of range should be a positive number: */0",
		"*/-1 * * * *":        "negative number (-1) not allowed: -1",
		"* * * x *":           `failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax`,
		"@never":              "unrecognized descriptor: @never",
		"@every x":            `failed to parse duration @every x: time: invalid duration "x"`,
		"TZ=Nowhere * * * *":  "provided bad location Nowhere: unknown time zone Nowhere",
		"CRON_TZ=0":           "invalid schedule format: runtime error: slice bounds out of range [:-1]",
		"":                    "empty spec string",
		"0 0 31 FEBRUARY mon": `failed to parse int from FEBRUARY: strconv.Atoi: parsing "FEBRUARY": invalid syntax`,
	} {
		t.Run(schedule, func(t *testing.T) {
			got := ""
			if err := checkSchedule(schedule); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
