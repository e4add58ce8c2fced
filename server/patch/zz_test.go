package patch
import ("testing";"fmt";"strings";"time";"k8s.io/apimachinery/pkg/runtime/schema")
func TestZZ(t *testing.T){
	types:=NewTypes(nil)
	gen:=func(n int, f func(i int) string) string { var b strings.Builder; for i:=range n { if i>0 {b.WriteByte(',')}; b.WriteString(f(i*7919%n)) }; return b.String() }
	for name,c := range map[string]struct{gvk schema.GroupVersionKind; doc string}{
		"cm": {configMapKind, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{`+gen(150000,func(i int)string{return fmt.Sprintf(`"k%d":"v"`,i)})+`}}`},
		"env": {podKind, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","env":[`+gen(100000,func(i int)string{return fmt.Sprintf(`{"name":"k%d"}`,i)})+`]}]}}`},
		"containers": {podKind, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[`+gen(100000,func(i int)string{return fmt.Sprintf(`{"name":"k%d"}`,i)})+`]}}`},
		"finalizers": {configMapKind, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":[`+gen(200000,func(i int)string{return fmt.Sprintf(`"k%d"`,i)})+`]}}`},
	} {
		f:=testFields(types,c.gvk)
		s:=time.Now()
		obj,err:=f.Apply(nil,[]byte(c.doc),"m",false)
		fmt.Println(name,len(c.doc),"apply create",time.Since(s),err)
		if err!=nil {continue}
		s=time.Now()
		_,err=f.Apply(obj,[]byte(c.doc),"m2",false)
		fmt.Println(name,"apply again",time.Since(s),err)
		s=time.Now()
		_,err=f.Update(obj,obj.DeepCopyObject(),"m2")
		fmt.Println(name,"update",time.Since(s),err)
	}
}
